import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import type { KubernetesClient, KubernetesObject } from '../../../src/compute/kubernetes/client.ts'

/** The cluster's default storage class, and one that makes no volume for one pod alone. */
export const STORAGE_CLASS = 'directories'
export const SHARED_CLASS = 'directories-of-nodes'

const PROVISIONER = 'berth.test/directories'
const VOLUMES = '/api/v1/persistentvolumes'

/** Path of the storage classes in the API. */
export const STORAGE_CLASSES = '/apis/storage.k8s.io/v1/storageclasses'

const isProvided = (storageClass: string): boolean => [STORAGE_CLASS, SHARED_CLASS].includes(storageClass)

interface Claim extends KubernetesObject {
  readonly metadata: KubernetesObject['metadata'] & {
    readonly namespace: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: {
    readonly accessModes: readonly string[]
    readonly storageClassName?: string
    readonly volumeName?: string
    readonly resources: { readonly requests: { readonly storage: string } }
  }
}

interface Volume extends KubernetesObject {
  readonly spec: { readonly storageClassName?: string; readonly local?: { readonly path: string } }
  readonly status?: { readonly phase: string }
}

/** Makes a storage class whose volumes are provided. */
export async function makeStorageClass(client: KubernetesClient, name: string): Promise<void> {
  const isDefault = String(name === STORAGE_CLASS)
  await client.request('POST', STORAGE_CLASSES, {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' },
    metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': isDefault } },
    ...{ provisioner: PROVISIONER, volumeBindingMode: 'WaitForFirstConsumer', reclaimPolicy: 'Delete' },
  })
}

/**
 * Provides both storage classes: makes a directory for each claim on the node that the scheduler has chosen, as a
 * `local` volume, and removes it when the claim is gone.
 *
 * @param directoryOf where the volumes of a node are
 */
export async function provideStorage(
  client: KubernetesClient,
  directoryOf: (node: string) => string,
  signal: AbortSignal,
): Promise<void> {
  for (const name of [STORAGE_CLASS, SHARED_CLASS]) await makeStorageClass(client, name)

  const provide = async ({ metadata, spec }: Claim): Promise<void> => {
    const node = metadata.annotations?.['volume.kubernetes.io/selected-node']
    const { storageClassName = '', volumeName } = spec
    if (node === undefined || !isProvided(storageClassName) || volumeName !== undefined) return
    if (storageClassName === SHARED_CLASS && spec.accessModes.includes('ReadWriteOncePod')) {
      await refuse(metadata)
      return
    }
    const name = `pvc-${metadata.uid}`
    const path = `${directoryOf(node)}/${name}`
    mkdirSync(path, { recursive: true })
    chmodSync(path, 0o777)
    const { namespace, uid } = metadata
    const onNode = { key: 'kubernetes.io/hostname', operator: 'In', values: [node] }
    await client.request('POST', VOLUMES, {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
      metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': PROVISIONER } },
      spec: {
        ...{ capacity: spec.resources.requests, accessModes: spec.accessModes, volumeMode: 'Filesystem' },
        ...{ persistentVolumeReclaimPolicy: 'Delete', storageClassName, local: { path } },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: metadata.name, uid },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [onNode] }] } },
      },
    })
  }
  /** Says so as provisioners of clouds do. */
  const refuse = async ({ name, namespace, uid }: Claim['metadata']): Promise<void> => {
    await client.request('POST', `/api/v1/namespaces/${namespace}/events`, {
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      ...{ type: 'Warning', reason: 'ProvisioningFailed', reportingComponent: PROVISIONER },
      message: `failed to provision volume with StorageClass "${SHARED_CLASS}": Only support ReadWriteOnce access mode`,
    })
  }
  const remove = async ({ metadata, spec, status }: Volume): Promise<void> => {
    if (!isProvided(spec.storageClassName ?? '') || status?.phase !== 'Released') return
    rmSync(spec.local?.path ?? '', { recursive: true, force: true })
    await client.request('DELETE', `${VOLUMES}/${metadata.name}`)
  }

  /** Each change is seen at least once, so most of what fails was done before, or is done with the next change. */
  const follow = <T extends KubernetesObject>(path: string, act: (object: T) => Promise<void>): void => {
    const changed = (object: T): void => void act(object).catch(() => {})
    void client.follow<T>(path, { listed: (objects) => objects.forEach(changed), changed, gone() {} }, signal)
  }
  follow('/api/v1/persistentvolumeclaims', provide)
  follow(VOLUMES, remove)
}
