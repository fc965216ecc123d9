import { within } from '../../runtime/wait.ts'
import type { KubernetesClient } from './client.ts'
import type { Pod } from './pod.ts'

/** Follows the pods of one berth by one watch, as long as somebody uses it. */
export class PodWatch {
  readonly #client: KubernetesClient
  readonly #path: string
  readonly #pods = new Map<string, Pod>()
  readonly #listeners = new Set<(pod: Pod, isGone: boolean) => void>()
  /** Wake those who wait for a change of a pod, by uid. */
  readonly #waiting = new Map<string, Set<() => void>>()
  #users = 0
  #over = new AbortController()

  /** @param path of the list of pods, with its query */
  constructor(client: KubernetesClient, path: string) {
    this.#client = client
    this.#path = path
  }

  /** Follows the pods until the returned object is disposed of. */
  use(): Disposable {
    if (this.#users === 0) this.#start()
    this.#users += 1
    return {
      [Symbol.dispose]: () => {
        this.#users -= 1
        if (this.#users === 0) this.#over.abort()
      },
    }
  }

  /** Calls a listener at each change of a pod, also for those that are known already, until the returned object is disposed of. */
  listen(listener: (pod: Pod, isGone: boolean) => void): Disposable {
    const use = this.use()
    this.#listeners.add(listener)
    for (const pod of this.#pods.values()) listener(pod, false)
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener)
        use[Symbol.dispose]()
      },
    }
  }

  /** Adds a pod that was just made, in case that the watch has not reported it yet. */
  add(pod: Pod): void {
    if (!this.#pods.has(pod.metadata.uid)) this.#pods.set(pod.metadata.uid, pod)
  }

  /** Returns a pod that was added or has been reported; null if it is gone. */
  get(uid: string): Pod | null {
    return this.#pods.get(uid) ?? null
  }

  /** Waits for a change of a pod, at most `ms` milliseconds. Resolves to whether there was one. */
  async wait(uid: string, ms: number): Promise<boolean> {
    const changed = Promise.withResolvers<true>()
    const wake = (): void => changed.resolve(true)
    const waiting = this.#waiting.get(uid) ?? new Set()
    this.#waiting.set(uid, waiting.add(wake))
    const hasChanged = await within(ms, changed.promise, false)
    waiting.delete(wake)
    if (waiting.size === 0 && this.#waiting.get(uid) === waiting) this.#waiting.delete(uid)
    return hasChanged
  }

  #start(): void {
    this.#over = new AbortController()
    const { signal } = this.#over
    this.#pods.clear()
    const changed = (pod: Pod): void => this.#report(pod, false)
    void this.#client.follow<Pod>(
      this.#path,
      {
        listed: (pods) => {
          for (const pod of pods) changed(pod)
          const listed = new Set(pods.map(({ metadata }) => metadata.uid))
          for (const pod of this.#pods.values()) if (!listed.has(pod.metadata.uid)) void this.#look(pod)
        },
        changed,
        gone: (pod) => this.#report(pod, true),
      },
      signal,
    )
  }

  /** Looks whether a pod is gone that a list did not have: it may have been made after the list. */
  async #look(pod: Pod): Promise<void> {
    const [path = ''] = this.#path.split('?')
    const found = await this.#client.find<Pod>(`${path}/${pod.metadata.name}`).catch(() => pod)
    if (found?.metadata.uid !== pod.metadata.uid) this.#report(pod, true)
  }

  #report(pod: Pod, isGone: boolean): void {
    if (isGone) this.#pods.delete(pod.metadata.uid)
    else this.#pods.set(pod.metadata.uid, pod)
    for (const wake of this.#waiting.get(pod.metadata.uid) ?? []) wake()
    for (const listener of this.#listeners) listener(pod, isGone)
  }
}
