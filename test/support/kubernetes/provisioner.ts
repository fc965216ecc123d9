import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import type { KubernetesClient, KubernetesObject } from '../../../src/compute/kubernetes/client.ts'

/** The cluster's default storage class. */
export const STORAGE_CLASS = 'directories'

const PROVISIONER = 'berth.test/directories'
const VOLUMES = '/api/v1/persistentvolumes'

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

/**
 * Provides the default storage class: makes a directory for each claim on the node that the scheduler has chosen, as a
 * `local` volume, and removes it when the claim is gone.
 *
 * @param directoryOf where the volumes of a node are
 */
export async function provideStorage(
  client: KubernetesClient,
  directoryOf: (node: string) => string,
  signal: AbortSignal,
): Promise<void> {
  await client.request('POST', '/apis/storage.k8s.io/v1/storageclasses', {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' },
    metadata: {
      name: STORAGE_CLASS,
      annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
    },
    ...{ provisioner: PROVISIONER, volumeBindingMode: 'WaitForFirstConsumer', reclaimPolicy: 'Delete' },
  })

  const provide = async ({ metadata, spec }: Claim): Promise<void> => {
    const node = metadata.annotations?.['volume.kubernetes.io/selected-node']
    if (node === undefined || spec.storageClassName !== STORAGE_CLASS || spec.volumeName !== undefined) return
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
        ...{ persistentVolumeReclaimPolicy: 'Delete', storageClassName: STORAGE_CLASS, local: { path } },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: metadata.name, uid },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [onNode] }] } },
      },
    })
  }
  const remove = async ({ metadata, spec, status }: Volume): Promise<void> => {
    if (spec.storageClassName !== STORAGE_CLASS || status?.phase !== 'Released') return
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
