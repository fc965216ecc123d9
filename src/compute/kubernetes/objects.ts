import type { KubernetesConfig } from '../../config/compute.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import {
  CACHES_PATH,
  EXECUTABLE_PATH,
  type InstanceSpec,
  lineOfUser,
  ROOT_CAPABILITIES,
  SANDBOXD_SHARE,
  SERVER_USER,
  type StorageSpec,
  TOOLS_PATH,
  WORKSPACE_PATH,
} from '../engine/engine.ts'
import { isOwnImage, labelsToText } from '../engine/names.ts'

/** The prefix of labels of what berth makes in a cluster. */
export const POD_LABELS = 'berth.dev/'

/** Name of the container of a server in its pod. */
export const CONTAINER = 'server'

/** Seconds that process 1 has to end all that runs in its pod, before the node kills it. */
export const GRACE_SECONDS = 5

/** The part of its limits that a server is sure to get; of the rest it gets what other pods of its node leave. */
const REQUESTED_SHARE = 0.25

/** How pods and claims are made in one cluster. */
export interface PodSettings extends Pick<KubernetesConfig, 'nodeSelector' | 'runtimeClass'> {
  /** Whether nodes pull images that they lack. */
  readonly pulls: boolean
  /** Image that has berth's executable and tools, for those that lack them. */
  readonly toolsImage: string
  /** Whether nodes with any taint take it; by default those that are lost while it runs. */
  readonly toleratesAll?: boolean
}

/** What names an object of berth. */
export type NamedObject = Pick<StorageSpec, 'name' | 'labels'>

/** Returns what names an object of berth in a cluster. */
const metadataOf = ({ name, labels }: NamedObject): object => ({
  name,
  labels: { 'app.kubernetes.io/managed-by': 'berth', ...labelsToText(POD_LABELS, labels) },
})

/** The annotation of a pod that its container has as /etc/passwd, since no image names the user of a server; and its content. */
const USERS = `${POD_LABELS}users`
const usersOf = (user: number): string =>
  `root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n${lineOfUser(user)}`

/** Returns the query that selects what is labelled with an owner. */
export const ownedBy = (owner: string): string =>
  `?labelSelector=${encodeURIComponent(`${POD_LABELS}owner=${owner}`)}`

/** Whether a volume is one pod's alone, so that a second one with its claim waits, or that of all pods of one node. */
export type AccessMode = 'ReadWriteOncePod' | 'ReadWriteOnce'

/** What volume a claim asks for. */
interface VolumeWish {
  /** Bytes, or a quantity as the cluster writes it. */
  readonly size: string
  readonly storageClass: string | null
  readonly mode: AccessMode
}

/** Returns the PersistentVolumeClaim of a server. */
export const claimOf = (named: NamedObject, { size, storageClass, mode }: VolumeWish): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: metadataOf(named),
  spec: {
    accessModes: [mode],
    ...(storageClass === null ? {} : { storageClassName: storageClass }),
    resources: { requests: { storage: size } },
  },
})

/**
 * Returns the Pod of a server: one container, as the Pod Security Standard "restricted" wants it unless the server is
 * root's, without a token of the cluster. No controller stands behind it, which would start a second one beside it.
 */
export function podOf(spec: InstanceSpec, settings: PodSettings): object {
  const { limits, user } = spec
  const isRoot = user === 0
  const { nodeSelector, runtimeClass, pulls, toolsImage, toleratesAll = false } = settings
  const memory = limits.memoryBytes + SANDBOXD_SHARE.memoryBytes
  const millis = Math.ceil(limits.cpus * 1000)
  const share = (value: number): number => Math.ceil(value * REQUESTED_SHARE)
  // A quota may want both, and for an init container too.
  const resources = {
    requests: { cpu: `${share(millis)}m`, memory: String(share(memory)) },
    limits: { cpu: `${millis}m`, memory: String(memory) },
  }
  const imagePullPolicy = pulls ? 'IfNotPresent' : 'Never'
  const securityContext = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'], ...(isRoot ? { add: ROOT_CAPABILITIES } : {}) },
    readOnlyRootFilesystem: !isRoot,
  }
  const hasTools = isOwnImage(spec.image)
  const tools = { name: 'tools', mountPath: TOOLS_PATH }
  const ofUsers = { path: 'passwd', fieldRef: { fieldPath: `metadata.annotations['${USERS}']` } }
  const users = isRoot ? [] : [{ name: 'users', downwardAPI: { items: [ofUsers] } }]
  const empty = ['tmp', 'run', 'caches', ...(hasTools ? [] : ['tools'])]
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadataOf(spec),
      ...(isRoot ? {} : { annotations: { [USERS]: usersOf(user) } }),
    },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      ...(runtimeClass === null ? {} : { runtimeClassName: runtimeClass }),
      ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
      // Without these a cluster ends the server when its node is back after a cut of five minutes.
      tolerations: toleratesAll
        ? [{ operator: 'Exists' }]
        : ['not-ready', 'unreachable'].map((taint) => ({
            ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute' },
          })),
      securityContext: {
        runAsNonRoot: !isRoot,
        runAsUser: user,
        runAsGroup: isRoot ? 0 : SERVER_USER,
        fsGroup: SERVER_USER,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
        sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
      },
      ...(hasTools
        ? {}
        : {
            initContainers: [
              {
                ...{ name: 'tools', image: toolsImage, imagePullPolicy, securityContext, resources },
                command: ['/bin/cp', '-r', `${TOOLS_PATH}/.`, '/tools/'],
                terminationMessagePolicy: 'FallbackToLogsOnError',
                volumeMounts: [{ ...tools, mountPath: '/tools' }],
              },
            ],
          }),
      containers: [
        {
          ...{ name: CONTAINER, image: spec.image, imagePullPolicy, securityContext, resources },
          command: [EXECUTABLE_PATH, ...spec.args],
          env: Object.entries(spec.env).map(([name, value]) => ({ name, value })),
          workingDir: '/',
          // What process 1 says last is the reason that a person reads.
          terminationMessagePolicy: 'FallbackToLogsOnError',
          volumeMounts: [
            { name: 'workspace', mountPath: WORKSPACE_PATH },
            { name: 'tmp', mountPath: '/tmp' },
            { name: 'run', mountPath: '/run' },
            { name: 'caches', mountPath: CACHES_PATH },
            ...(hasTools ? [] : [{ ...tools, readOnly: true }]),
            ...users.map(({ name }) => ({
              ...{ name, mountPath: '/etc/passwd', subPath: 'passwd', readOnly: true },
            })),
          ],
        },
      ],
      volumes: [
        { name: 'workspace', persistentVolumeClaim: { claimName: spec.storage } },
        ...empty.map((name) => ({ name, emptyDir: {} })),
        ...users,
      ],
    },
  }
}

/**
 * Returns the path of the first field that a cluster has not kept as it was sent, such as one of a newer version, or one
 * that an admission controller has changed; null if all are there. Quantities may be written in another way.
 */
export function changedField(sent: unknown, kept: unknown, path = ''): string | null {
  if (path.endsWith('.resources')) return kept === undefined ? path : null
  if (Array.isArray(sent)) {
    const list = Array.isArray(kept) ? kept : []
    for (const [index, one] of sent.entries()) {
      const { name } = fieldsOf(one)
      const candidates = name === undefined ? list : list.filter((other) => fieldsOf(other).name === name)
      if (!candidates.some((other) => changedField(one, other, path) === null))
        return changedField(one, candidates[0], `${path}[${typeof name === 'string' ? name : index}]`) ?? path
    }
    return null
  }
  if (typeof sent !== 'object' || sent === null) return sent === kept ? null : path
  for (const [name, value] of Object.entries(sent)) {
    const changed = changedField(value, fieldsOf(kept)[name], `${path}.${name}`)
    if (changed !== null) return changed
  }
  return null
}
