import { within } from '../../runtime/wait.ts'
import type { KubernetesClient } from './client.ts'
import type { Pod } from './pod.ts'

/** Receives a pod that has changed, or is gone. */
type PodListener = (pod: Pod, isGone: boolean) => void

/** Follows the pods of one berth by one watch, as long as somebody uses it. */
export class PodWatch {
  readonly #client: KubernetesClient
  readonly #path: string
  readonly #pods = new Map<string, Pod>()
  readonly #listeners = new Set<PodListener>()
  #over = new AbortController()

  /** @param path of the list of pods, with its query */
  constructor(client: KubernetesClient, path: string) {
    this.#client = client
    this.#path = path
  }

  /** Follows the pods, and calls a listener at each change of one, until the returned object is disposed of. */
  follow(listener: PodListener = () => {}): Disposable {
    if (this.#listeners.size === 0) this.#start()
    this.#listeners.add(listener)
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener)
        if (this.#listeners.size === 0) this.#over.abort()
      },
    }
  }

  /** The pods that were added or have been reported, and are not gone. */
  get known(): readonly Pod[] {
    return [...this.#pods.values()]
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
    using _following = this.follow((pod) => {
      if (pod.metadata.uid === uid) changed.resolve(true)
    })
    return await within(ms, changed.promise, false)
  }

  #start(): void {
    this.#over = new AbortController()
    this.#pods.clear()
    const changed = (pod: Pod): void => this.#report(pod, false)
    const gone = (pod: Pod): void => this.#report(pod, true)
    const listed = (pods: readonly Pod[]): void => {
      for (const pod of pods) changed(pod)
      const uids = new Set(pods.map(({ metadata }) => metadata.uid))
      for (const pod of this.#pods.values()) if (!uids.has(pod.metadata.uid)) void this.#look(pod)
    }
    void this.#client.follow<Pod>(this.#path, { listed, changed, gone }, this.#over.signal)
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
    for (const listener of this.#listeners) listener(pod, isGone)
  }
}
