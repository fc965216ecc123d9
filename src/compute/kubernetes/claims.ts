import type { StorageSpec } from '../engine/engine.ts'
import { labelsFromText } from '../engine/names.ts'
import { isRefusal } from '../engine/refusal.ts'
import { ComputeError } from '../sandbox.ts'
import type { KubernetesClient, KubernetesObject } from './client.ts'
import { type AccessMode, claimOf, type NamedObject, POD_LABELS } from './objects.ts'

/** Milliseconds that a removal may take, and between two looks whether it has ended: at first, and at most. */
const REMOVAL_MS = 60_000
const LOOK_MS = { first: 150, most: 2_000 } as const

/** A PersistentVolumeClaim, as far as berth reads it. */
interface Claim extends KubernetesObject {
  readonly spec: {
    readonly storageClassName?: string
    readonly volumeName?: string
    readonly accessModes: readonly string[]
    readonly resources: { readonly requests: { readonly storage: string } }
  }
  readonly status: { readonly phase: string }
}

/** The claims of servers in one namespace. */
export class Claims {
  readonly #client: KubernetesClient
  readonly #path: string
  readonly #storageClass: string | null
  #mode: AccessMode = 'ReadWriteOncePod'

  /**
   * @param path of the list of claims in the API
   * @param storageClass null for the cluster's default
   */
  constructor(client: KubernetesClient, path: string, storageClass: string | null) {
    this.#client = client
    this.#path = path
    this.#storageClass = storageClass
  }

  /** How new claims are made: for one pod alone, unless the cluster or the class was found not to have that. */
  get mode(): AccessMode {
    return this.#mode
  }

  /** Makes a claim, unless there is one of its name. Throws `EngineRefusal`; `ComputeError` if it could never have a volume. */
  async create(storage: StorageSpec): Promise<void> {
    const { spec } = await this.#make(storage, String(storage.bytes))
    // A cluster puts the name of its default in.
    if (spec.storageClassName === undefined)
      throw new ComputeError(
        'The cluster has no default storage class: name one with --kubernetes-storage-class.',
      )
  }

  /** Reports whether there is a claim of this name, which is not being removed. */
  async has(name: string): Promise<boolean> {
    const claim = await this.#find(name)
    return claim !== null && claim.metadata.deletionTimestamp === undefined
  }

  /** Reports whether there is a volume for a claim. */
  async hasVolume(name: string): Promise<boolean> {
    return (await this.#find(name))?.spec.volumeName !== undefined
  }

  /** Removes a claim; resolves when it is gone, which it is after the last pod that uses it. Throws `ComputeError`. */
  async remove(name: string): Promise<void> {
    const until = performance.now() + REMOVAL_MS
    let isThere = await this.#client.remove(`${this.#path}/${name}`)
    for (let ms: number = LOOK_MS.first; isThere; ms = Math.min(2 * ms, LOOK_MS.most)) {
      if (performance.now() > until)
        throw new ComputeError(
          `The claim ${name} is still in use. Delete the pod that uses it, or wait until its node is back.`,
        )
      await Bun.sleep(ms)
      isThere = (await this.#find(name)) !== null
    }
  }

  /**
   * Replaces a claim that never had a volume, since its class makes none for one pod alone, by one for the pods of one node;
   * no pod may use it. Further claims are made so, too.
   *
   * @returns false if it is none of these
   */
  async loosen(name: string): Promise<boolean> {
    const claim = await this.#find(name)
    if (claim?.status.phase !== 'Pending' || !claim.spec.accessModes.includes('ReadWriteOncePod'))
      return false
    await this.remove(name)
    this.#mode = 'ReadWriteOnce'
    const { metadata, spec } = claim
    const labels = labelsFromText(POD_LABELS, metadata.labels)
    await this.#make({ name, labels }, spec.resources.requests.storage)
    return true
  }

  #find(name: string): Promise<Claim | null> {
    return this.#client.find<Claim>(`${this.#path}/${name}`)
  }

  async #make(named: NamedObject, size: string): Promise<Claim> {
    const claim = claimOf(named, { size, storageClass: this.#storageClass, mode: this.#mode })
    try {
      return await this.#client.request<Claim>('POST', this.#path, claim)
    } catch (error) {
      if (isRefusal(error, 409)) return this.#client.request<Claim>('GET', `${this.#path}/${named.name}`)
      // Before Kubernetes 1.29, or where a policy of the cluster does not permit it.
      if (this.#mode === 'ReadWriteOnce' || !isAccessModeRefused(error)) throw error
      this.#mode = 'ReadWriteOnce'
      return this.#make(named, size)
    }
  }
}

const isAccessModeRefused = (error: unknown): boolean =>
  isRefusal(error, 403, 422) && /accessModes|ReadWriteOncePod/.test(error.message)
