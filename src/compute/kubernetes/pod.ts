import { sentence } from '../../runtime/error-info.ts'
import type { EngineInstance } from '../engine/engine.ts'
import { labelsFromText } from '../engine/names.ts'
import type { KubernetesObject } from './client.ts'
import { CONTAINER, POD_LABELS } from './objects.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

interface ContainerStatus {
  readonly name: string
  readonly ready: boolean
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string }
    readonly running?: object
    readonly terminated?: { readonly reason?: string; readonly exitCode: number; readonly message?: string }
  }
}

/** A Pod, as far as berth reads it. */
export interface Pod extends KubernetesObject {
  readonly spec: {
    readonly nodeName?: string
    readonly containers?: readonly {
      readonly name: string
      readonly env?: readonly { readonly name: string }[]
    }[]
    readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName: string } }[]
  }
  readonly status: {
    readonly phase: string
    /** Address of its node. */
    readonly hostIP?: string
    /** Its own. */
    readonly podIP?: string
    readonly reason?: string
    readonly message?: string
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

/** Returns the names of the claims that a pod uses. */
export const claimsOf = ({ spec: { volumes = [] } }: Pod): string[] =>
  volumes.flatMap(({ persistentVolumeClaim: claim }) => claim?.claimName ?? [])

/** Reasons for which a container waits that do not pass by themselves, and what a person can do. */
const HOPELESS: Readonly<Record<string, string>> = {
  ErrImageNeverPull:
    'Its nodes do not have the image, and berth has them pull none: load it there, or start berth with --pull missing.',
  ErrImagePull: 'Check the name of the image, and that its nodes may pull it.',
  ImagePullBackOff: 'Check the name of the image, and that its nodes may pull it.',
  InvalidImageName: 'Check the name of the image.',
  CreateContainerConfigError: 'Check the settings of the namespace.',
  CreateContainerError: 'Look at the events of the pod.',
  RunContainerError:
    'Check that the image has glibc, which Debian, Ubuntu and their like have, and Alpine has not.',
}

/** Returns the pod as an instance. */
export const instanceOf = ({ metadata, spec }: Pod): EngineInstance => ({
  id: metadata.uid,
  name: metadata.name,
  labels: labelsFromText(POD_LABELS, metadata.labels),
  node: spec.nodeName ?? null,
  // What changes pods may have added some.
  variables: (spec.containers?.find(({ name }) => name === CONTAINER)?.env ?? []).map(({ name }) => name),
})

/** Returns why a pod will not start, as sentences; null if it may. */
export function startFailureOf(pod: Pod): string | null {
  for (const { state } of statusesOf(pod)) {
    const { reason = '', message } = state?.waiting ?? {}
    const remedy = HOPELESS[reason]
    if (remedy !== undefined) return `${sentence(message ?? reason)} ${remedy}`
  }
  return null
}

/** Returns why no node takes a pod, as the scheduler says it; null if one has taken it or none was looked for. */
export function unscheduledReasonOf(pod: Pod): string | null {
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status !== 'False') return null
  // Behind it are remarks on what no pod of berth asks for: to end others, and to allocate devices.
  return (scheduled.message ?? scheduled.reason ?? '').replace(
    /\. (?:no new claims|preemption|not found).*$/,
    '',
  )
}

const everyReason = (reason: string, pattern: RegExp): boolean =>
  /^0\/\d+ nodes are available: ./.test(reason) &&
  reason
    .replace(/^[^:]*: /, '')
    .split(', ')
    .every((one) => pattern.test(one))

/**
 * Reports whether all that keeps a pod from being scheduled is which nodes there are, and not what they have left.
 *
 * @param reason as `unscheduledReasonOf` returns it
 */
export const isAboutNodes = (reason: string): boolean =>
  everyReason(reason, /\baffinity\b|\btaint\b|\bunschedulable\b/)

/**
 * Reports whether what keeps a pod from being scheduled is that another one has its claim, or that there is no claim. Berth has
 * made it and waited for the end of that pod, so the scheduler has not heard of it yet.
 */
export const isOutdated = (reason: string): boolean =>
  // Which of its plugins looks first for a claim, and so the wording, depends on which of its caches was filled first.
  /already in-use by another pod|persistentvolumeclaim "[^"]*" not found|could not find v1\.PersistentVolumeClaim/.test(
    reason,
  )

/** Reports whether no node of the cluster is the one of a pod's claim, of a pod which tolerates all taints. */
export const isNodeGone = (reason: string): boolean =>
  everyReason(reason, /PersistentVolume's node affinity|volume node affinity conflict/)

/**
 * Reports whether the cluster has lost the node of a pod that runs: it then takes the pod for not ready, while its container
 * is still said to be.
 */
export function isUnreachable(pod: Pod): boolean {
  const server = pod.status.containerStatuses?.find(({ name }) => name === CONTAINER)
  return (
    pod.spec.nodeName !== undefined &&
    conditionOf(pod, 'Ready')?.status === 'False' &&
    server?.ready === true &&
    server.state?.running !== undefined
  )
}

/** Reports whether the status of a pod says that its container runs, which it does up to a second late. */
export const isRunning = ({ status }: Pod): boolean =>
  status.containerStatuses?.find(({ name }) => name === CONTAINER)?.state?.running !== undefined

/** Returns why a pod has ended, as sentences; null if it has not. */
export function endOf(pod: Pod): string | null {
  const { phase, reason, message } = pod.status
  if (phase !== 'Succeeded' && phase !== 'Failed') return null
  const disruption = conditionOf(pod, 'DisruptionTarget')
  if (disruption?.status === 'True')
    return `The cluster ended it: ${sentence(disruption.message ?? disruption.reason ?? '')}`
  if (reason !== undefined) return `The cluster ended it: ${sentence(message ?? reason)}`
  const ended = statusesOf(pod).find(({ state }) => state?.terminated !== undefined)?.state?.terminated
  if (ended?.reason === 'OOMKilled') return 'It ran out of memory.'
  if (pod.metadata.deletionTimestamp !== undefined) return REMOVED
  const said = ended?.message?.trim()
  const end = `Its container has ended with status ${ended?.exitCode ?? 'unknown'}`
  return said ? `${end}: ${sentence(said)}` : `${end}.`
}

/** Says that a pod has been removed by somebody else. */
export const REMOVED = 'Its pod was deleted.'

const statusesOf = ({ status }: Pod): ContainerStatus[] => [
  ...(status.containerStatuses ?? []),
  ...(status.initContainerStatuses ?? []),
]

const conditionOf = ({ status }: Pod, type: string): Condition | undefined =>
  status.conditions?.find((condition) => condition.type === type)
