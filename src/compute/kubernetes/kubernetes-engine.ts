import type { KubernetesConfig } from '../../config/compute.ts'
import { messageOf, sentence } from '../../runtime/error-info.ts'
import { within } from '../../runtime/wait.ts'
import {
  type Engine,
  type EngineInstance,
  type EngineInventory,
  type EngineLabels,
  type EngineProbe,
  EXECUTABLE_PATH,
  type InstanceSpec,
  LISTEN_PATH,
  type OutsideAddress,
  StorageLost,
  type StorageSpec,
} from '../engine/engine.ts'
import { digestOf, labelsFromText } from '../engine/names.ts'
import { EngineRefusal, explained, isRefusal } from '../engine/refusal.ts'
import { ServerGone } from '../engine/resumable.ts'
import { CARRIER_COMMAND } from '../processes.ts'
import { ComputeError } from '../sandbox.ts'
import type { FrameTransport } from '../sandboxd/transport.ts'
import { Claims } from './claims.ts'
import { KubernetesClient, type KubernetesObject } from './client.ts'
import { ExecTransport } from './exec-transport.ts'
import type { ClusterAccess } from './kubeconfig.ts'
import {
  type AccessMode,
  CONTAINER,
  changedField,
  GRACE_SECONDS,
  ownedBy,
  POD_LABELS,
  type PodSettings,
  podOf,
} from './objects.ts'
import {
  claimsOf,
  endOf,
  instanceOf,
  isAboutNodes,
  isNodeGone,
  isOutdated,
  isRunning,
  isUnreachable,
  type Pod,
  REMOVED,
  startFailureOf,
  unscheduledReasonOf,
} from './pod.ts'
import { PodWatch } from './pod-watch.ts'
import { CLUSTER_RIGHTS } from './rights.ts'

/** Milliseconds that a pod may take to run: with an image that its node has, and with one that it pulls. */
const START_MS = { present: 60_000, pulled: 600_000 } as const

/** Milliseconds for which no node may take a pod: a volume is being made, or another pod is about to end. */
const UNSCHEDULED_MS = 10_000

/**
 * The same, while the scheduler does not know what berth has done: after a cut from the API server it hears of that up to half
 * a minute later.
 */
const SCHEDULER_MS = 50_000

/** Milliseconds in which the node that has a claim takes a pod which tolerates all taints. */
const OFFER_MS = 5_000

/** Milliseconds between two attempts to reach a container that is about to run: its status says so up to a second late. */
const ATTEMPT_MS = 60

/**
 * Milliseconds after which a program that was asked for has begun, or would have failed: nothing says that it has. While the
 * status does not say that the container runs, a failure is more likely, and may come later.
 */
const BEGUN_MS = { running: 40, waiting: 250 } as const

/** The port of every kubelet. */
const KUBELET_PORT = 10_250

/** Milliseconds in which a node responds that is back. */
const BACK_MS = 3_000

/** Milliseconds between two looks at the events of a claim whose pod has no node yet. */
const EVENTS_MS = 3_000

/** Milliseconds that a removal may take, and after which it is looked at without an event. */
const REMOVAL_MS = 60_000
const LOOK_MS = 2_000

/** An event of the cluster, as far as berth reads it. */
interface ClusterEvent {
  readonly type: string
  readonly reason: string
  readonly message: string
}

/** The class of a claim makes no volume with its access mode. */
class ModeRefused extends ComputeError {}

/** The options of `KubernetesEngine`. */
interface KubernetesEngineOptions extends Pick<PodSettings, 'pulls' | 'toolsImage'> {
  access: ClusterAccess
  config: KubernetesConfig
}

/** Runs servers as pods of a Kubernetes cluster, each on a PersistentVolumeClaim, in one namespace. */
export class KubernetesEngine implements Engine {
  readonly name = 'kubernetes'
  readonly carrier = 'exec'
  // The kernel's count by user is the only limit of processes: a pod has none, unless its kubelet has one for all.
  readonly hasOwnUsers = true
  readonly leadsOutside: boolean
  readonly client: KubernetesClient
  readonly namespace: string
  readonly #access: ClusterAccess
  readonly #claims: Claims
  readonly #settings: PodSettings
  readonly #watches = new Map<string, PodWatch>()
  /** First carriers of pods that `run` has reached, until `connect` takes them. */
  readonly #reached = new Map<string, ExecTransport>()
  /** The last carriers of pods that were asked for: one that says nothing may be on a node that is lost. */
  readonly #carriers = new Map<string, ExecTransport>()

  constructor({ access, config, pulls, toolsImage }: KubernetesEngineOptions) {
    const { namespace, storageClass, nodeSelector, runtimeClass } = config
    this.#access = access
    this.leadsOutside = config.network === 'pod'
    this.client = new KubernetesClient(access)
    this.namespace = namespace ?? access.namespace
    this.#claims = new Claims(this.client, this.#path('persistentvolumeclaims'), storageClass)
    this.#settings = { nodeSelector, runtimeClass, pulls, toolsImage }
  }

  /** Which volumes servers get. */
  get accessMode(): AccessMode {
    return this.#claims.mode
  }

  probe(): Promise<EngineProbe> {
    return this.#do('say what berth may do', async () => {
      const missing = await this.#missingRights()
      if (missing.length > 0)
        throw new ComputeError(
          `The account of the kubeconfig may not ${missing.join(', ')} in the namespace ${this.namespace}. Bind the Role to it that "berth kubernetes manifest" prints.`,
        )
      return {
        network: `the pod network of the cluster${this.leadsOutside ? '' : ', outbound by proxy'}`,
        enforced: { cpu: 'cgroup', memory: 'cgroup', processes: 'rlimit' },
        notes: [
          this.leadsOutside
            ? 'What servers reach over the network is up to the policies of the namespace, which only some clusters enforce.'
            : 'Outbound rules hold where the cluster enforces a policy that denies what servers send: "berth servers network" tries it.',
        ],
      }
    })
  }

  /** A cluster is known by its authority, which proves what it says; an address can be another's tomorrow. */
  async identify(): Promise<string> {
    const { tls, server } = this.#access
    const authority = tls.ca?.trim() ?? server
    return digestOf(`${authority}\n${this.namespace}`, 32)
  }

  async hasImage(): Promise<null> {
    return null
  }

  createStorage(storage: StorageSpec): Promise<void> {
    return this.#do('create the claim of a server', () => this.#claims.create(storage))
  }

  removeStorage(name: string): Promise<void> {
    return this.#do('delete the claim of a server', () => this.#claims.remove(name))
  }

  hasStorage(name: string): Promise<boolean> {
    return this.#do('look for the claim of a server', () => this.#claims.has(name))
  }

  run(spec: InstanceSpec): Promise<EngineInstance> {
    return this.#do('start the server', () => this.#run(spec))
  }

  async #run(spec: InstanceSpec): Promise<EngineInstance> {
    const pods = this.#watch(spec.labels.owner)
    using _use = pods.follow()
    const wanted = podOf(spec, this.#settings)
    // What an earlier start has left, as on a node that was lost: two pods would write to the same files.
    for (const other of await this.#podsOn(spec.labels, spec.storage)) await this.remove(instanceOf(other))
    const pod = await this.client.request<Pod>('POST', this.#path('pods'), wanted)
    pods.add(pod)
    try {
      const changed = changedField(wanted, pod)
      if (changed !== null)
        throw new ComputeError(
          `The cluster has not kept the field ${changed.slice(1)} of the pod of a server, so it is not what berth promises. Have its administrator look at what changes pods in the namespace ${this.namespace}.`,
        )
      this.#reached.set(pod.metadata.uid, await this.#reach(pods, pod, spec))
      return instanceOf(pods.get(pod.metadata.uid) ?? pod)
    } catch (error) {
      await this.remove(instanceOf(pod)).catch(() => {})
      if (error instanceof ModeRefused && (await this.#claims.loosen(spec.storage))) return this.#run(spec)
      throw error
    }
  }

  /** Its node and the API server are where policies have something to deny, whatever the cluster is connected to. */
  outsideOf({ id, labels }: EngineInstance): OutsideAddress[] {
    const { hostname, port } = new URL(this.client.server)
    const node = this.#watch(labels.owner).get(id)?.status.hostIP
    return [
      { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443) },
      ...(node === undefined ? [] : [{ host: node, port: KUBELET_PORT }]),
    ]
  }

  async connect(instance: EngineInstance): Promise<FrameTransport> {
    const reached = this.#reached.get(instance.id)
    this.#reached.delete(instance.id)
    if (reached !== undefined) return reached
    const pods = this.#watch(instance.labels.owner)
    using _use = pods.follow()
    const isSilent = this.#carriers.get(instance.id)?.isSilent ?? false
    // Behind a silent carrier may be an API server that does not respond: only if it does is it the node.
    const pod = (isSilent ? null : pods.get(instance.id)) ?? (await this.#find(instance))
    assertRuns(pod)
    const failure = startFailureOf(pod)
    if (failure !== null) throw new ServerGone(failure)
    await this.#checkReachable(pod, isSilent)
    return await this.#exec(pod)
  }

  remove(instance: EngineInstance): Promise<void> {
    return this.#do('delete the pod of a server', async () => {
      const { id, name, labels } = instance
      this.#reached.get(id)?.terminate()
      this.#reached.delete(id)
      this.#carriers.delete(id)
      const pods = this.#watch(labels.owner)
      using _use = pods.follow()
      let pod = await this.#find(instance)
      if (pod === null) return
      pods.add(pod)
      // It would end the server when its node is back, whatever its owner wants by then.
      await this.#checkReachable(pod)
      await this.client.remove(this.#path('pods', name), { uid: id, seconds: GRACE_SECONDS })
      const until = performance.now() + REMOVAL_MS
      while (pods.get(id) !== null) {
        // The watch reports the end; what it may have missed, a look shows.
        if (await pods.wait(id, LOOK_MS)) continue
        pod = await this.#find(instance)
        if (pod === null) return
        // What was about to start on a node that was lost does not tell that by its status.
        const isLate = performance.now() > until
        await this.#checkReachable(pod, isLate)
        if (isLate)
          throw new ComputeError(
            `The pod ${name} did not end within ${REMOVAL_MS / 1000} s. Look at its node ${pod.spec.nodeName}.`,
          )
      }
    })
  }

  /** Returns the pod of an instance; null if it is gone, or another one has its name. */
  async #find({ id, name }: EngineInstance): Promise<Pod | null> {
    const pod = await this.client.find<Pod>(this.#path('pods', name))
    return pod?.metadata.uid === id ? pod : null
  }

  list(owner: string): Promise<EngineInventory> {
    return this.#do('list its pods', async () => {
      const query = ownedBy(owner)
      const [pods, claims] = await Promise.all([
        this.client.list<Pod>(this.#path('pods') + query),
        this.client.list<KubernetesObject>(this.#path('persistentvolumeclaims') + query),
      ])
      return {
        instances: pods.items.map(instanceOf),
        storages: claims.items.map(({ metadata }) => ({
          name: metadata.name,
          labels: labelsFromText(POD_LABELS, metadata.labels),
        })),
      }
    })
  }

  watch(owner: string, ended: (id: string, reason: string) => void): Disposable {
    /** Ids of pods whose end was reported, and that are not gone yet. */
    const reported = new Set<string>()
    const report = (pod: Pod, isGone: boolean): void => {
      const { uid } = pod.metadata
      const end = endOf(pod) ?? (isGone ? REMOVED : null)
      if (end !== null && !reported.has(uid)) {
        reported.add(uid)
        ended(uid, end)
      }
      if (isGone) reported.delete(uid)
    }
    const pods = this.#watch(owner)
    const following = pods.follow(report)
    for (const pod of pods.known) report(pod, false)
    return following
  }

  /**
   * Tries to start the carrier of a pod as soon as it has a node, until it can be started. Throws why it will not.
   */
  async #reach(pods: PodWatch, { metadata: { uid } }: Pod, spec: InstanceSpec): Promise<ExecTransport> {
    const startMs = this.#settings.pulls ? START_MS.pulled : START_MS.present
    const began = performance.now()
    let last = 'It was not started.'
    let lookMs = EVENTS_MS
    for (;;) {
      const pod = pods.get(uid)
      assertRuns(pod)
      const failure = startFailureOf(pod)
      if (failure !== null) throw new ComputeError(`The server could not be started. ${failure}`)
      const waitedMs = performance.now() - began
      const unscheduled = unscheduledReasonOf(pod)
      const patienceMs = isOutdated(unscheduled ?? '') ? SCHEDULER_MS : UNSCHEDULED_MS
      if (unscheduled !== null && waitedMs > patienceMs)
        throw await this.#whyUnscheduled(pods, spec, pod.metadata.name, unscheduled)
      if (waitedMs > startMs)
        throw new ComputeError(
          `The server did not start within ${startMs / 1000} s: ${sentence(last)}${await this.#warnings(spec.storage, pod.metadata.name)}`,
        )
      if (pod.spec.nodeName === undefined && waitedMs > lookMs) {
        lookMs += EVENTS_MS
        await this.#checkVolume(spec.storage)
      }
      if (pod.spec.nodeName !== undefined) {
        try {
          return await this.#exec(pod)
        } catch (error) {
          if (error instanceof EngineRefusal) throw error
          last = messageOf(error)
        }
      }
      await pods.wait(uid, ATTEMPT_MS)
    }
  }

  /**
   * Returns why no node takes a server. The scheduler does not say which node has the claim, nor which taint a node has, and
   * berth may not look at nodes. So a second pod that tolerates all taints is offered: the node of the claim takes it, and
   * responds or not.
   *
   * @param reason as the scheduler says it
   */
  async #whyUnscheduled(
    pods: PodWatch,
    spec: InstanceSpec,
    name: string,
    reason: string,
  ): Promise<ComputeError> {
    const why = `No node of the cluster takes the server: ${sentence(reason)}${await this.#warnings(spec.storage, name)}`
    // A claim without a volume would get one on whichever node took that pod.
    if (!isAboutNodes(reason) || !(await this.#claims.hasVolume(spec.storage))) return new ComputeError(why)
    const offered = podOf({ ...spec, name: `${spec.name}-look` }, { ...this.#settings, toleratesAll: true })
    const pod = await this.client.request<Pod>('POST', this.#path('pods'), offered)
    const { name: offeredName, uid } = pod.metadata
    pods.add(pod)
    const now = (): Pod => pods.get(uid) ?? pod
    const until = performance.now() + OFFER_MS
    let isSilent = false
    try {
      while (now().spec.nodeName === undefined && performance.now() < until) {
        if (isNodeGone(unscheduledReasonOf(now()) ?? '')) return new StorageLost(why)
        await pods.wait(uid, ATTEMPT_MS)
      }
      isSilent = now().spec.nodeName !== undefined && !(await this.#isBack(now()))
      return isSilent ? unreachable(now()) : new ComputeError(why)
    } finally {
      // What never ran on a node that does not respond would stay until that is back.
      await this.client
        .remove(this.#path('pods', offeredName), { uid, seconds: isSilent ? 0 : GRACE_SECONDS })
        .catch(() => {})
    }
  }

  removalOf(kind: 'instance' | 'storage', name: string): string {
    // Neither is gone before its node is back, or is removed from the cluster.
    return `kubectl delete ${kind === 'instance' ? 'pod' : 'pvc'} ${name} --namespace ${this.namespace} --wait=false`
  }

  lostNode(labels: Pick<EngineLabels, 'owner' | 'server'>, storage: string): Promise<string | null> {
    return this.#do('look at the pods of the server', async () => {
      for (const pod of await this.#podsOn(labels, storage))
        if (isUnreachable(pod) && !(await this.#isBack(pod))) return silenceOf(pod)
      return null
    })
  }

  /** Returns the pods that have a claim of a server. While a snapshot is restored, its next files have another one. */
  async #podsOn({ owner, server }: Pick<EngineLabels, 'owner' | 'server'>, storage: string): Promise<Pod[]> {
    const query = `${ownedBy(owner)}${encodeURIComponent(`,${POD_LABELS}server=${server}`)}`
    const { items } = await this.client.list<Pod>(this.#path('pods') + query)
    return items.filter((pod) => claimsOf(pod).includes(storage))
  }

  /**
   * Throws if the cluster has lost the node of a pod, and the node does not respond either.
   *
   * @param isSilent whether something else says of the node that it is lost
   */
  async #checkReachable(pod: Pod, isSilent = false): Promise<void> {
    if ((isSilent || isUnreachable(pod)) && !(await this.#isBack(pod))) throw unreachable(pod)
  }

  /**
   * Reports whether the node of a pod responds that the cluster takes for lost: it does so up to ten seconds longer. What a
   * node refuses is a response too.
   */
  async #isBack(pod: Pod): Promise<boolean> {
    const path = this.#path('pods', pod.metadata.name)
    const transport = await ExecTransport.start(this.client, path, CONTAINER, [EXECUTABLE_PATH, '--version'])
    const responded = transport.spoken.then(
      () => true,
      (error: unknown) => !/\bdial\b|\btimeout\b|does not connect/.test(messageOf(error)),
    )
    const isBack = await within(BACK_MS, responded, false)
    transport.terminate()
    return isBack
  }

  /** Starts the program that joins process 1. Throws if that is not possible yet. */
  async #exec(pod: Pod): Promise<ExecTransport> {
    const command = [EXECUTABLE_PATH, CARRIER_COMMAND, LISTEN_PATH]
    const path = this.#path('pods', pod.metadata.name)
    const transport = await ExecTransport.start(this.client, path, CONTAINER, command)
    this.#carriers.set(pod.metadata.uid, transport)
    try {
      await transport.begun(BEGUN_MS[isRunning(pod) ? 'running' : 'waiting'])
      return transport
    } catch (error) {
      transport.terminate()
      this.#carriers.delete(pod.metadata.uid)
      // Another refusal may be of a container that does not run yet.
      const isFinal = error instanceof EngineRefusal ? isRefusal(error, 401, 403) : !transport.hasOpened
      if (isFinal) throw error
      throw new ComputeError(`Node ${pod.spec.nodeName}: ${sentence(messageOf(error))}`, { cause: error })
    }
  }

  /** Throws `ModeRefused` if no volume is made for a claim because of its access mode. */
  async #checkVolume(claim: string): Promise<void> {
    const failed = (await this.#events(claim)).filter(({ reason }) => reason === 'ProvisioningFailed')
    const refusal = failed.find(({ message }) => /access ?mode/i.test(message))
    if (refusal !== undefined)
      throw new ModeRefused(`The cluster makes no volume for the server: ${sentence(refusal.message)}`)
  }

  /** Returns what has happened lately to an object; nothing where that cannot be had. */
  async #events(name: string): Promise<readonly ClusterEvent[]> {
    const query = `?fieldSelector=${encodeURIComponent(`involvedObject.name=${name}`)}`
    const list = await this.client.list<ClusterEvent>(this.#path('events') + query).catch(() => null)
    return list?.items ?? []
  }

  /** Returns what the cluster has warned of lately about a claim and a pod, as sentences behind others. */
  async #warnings(...names: readonly string[]): Promise<string> {
    const events = (await Promise.all(names.map((name) => this.#events(name)))).flat()
    const warnings = events.filter(({ type, reason }) => type === 'Warning' && reason !== 'FailedScheduling')
    const texts = [...new Set(warnings.map(({ message }) => sentence(message)))].slice(-2)
    if (texts.some((text) => text.startsWith('storageclass.')))
      texts.push('Name another one with --kubernetes-storage-class.')
    return texts.length === 0 ? '' : ` ${texts.join(' ')}`
  }

  /** Returns what berth may not do, such as `create pods/exec`. */
  async #missingRights(): Promise<string[]> {
    const wanted = Object.entries(CLUSTER_RIGHTS).flatMap(([resource, verbs]) =>
      verbs.map((verb) => ({ verb, resource })),
    )
    const may = await Promise.all(wanted.map(({ verb, resource }) => this.#may(verb, resource)))
    return wanted.filter((_, index) => !may[index]).map(({ verb, resource }) => `${verb} ${resource}`)
  }

  async #may(verb: string, kind: string): Promise<boolean> {
    const [resource, subresource] = kind.split('/')
    const review = {
      ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' },
      spec: { resourceAttributes: { namespace: this.namespace, verb, resource, subresource } },
    }
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const { status } = await this.client.request<{ status: { allowed: boolean } }>('POST', path, review)
    return status.allowed
  }

  #watch(owner: string): PodWatch {
    const known = this.#watches.get(owner)
    if (known !== undefined) return known
    const watch = new PodWatch(this.client, this.#path('pods') + ownedBy(owner))
    this.#watches.set(owner, watch)
    return watch
  }

  #path(kind: 'pods' | 'persistentvolumeclaims' | 'events', name?: string): string {
    const path = `/api/v1/namespaces/${this.namespace}/${kind}`
    return name === undefined ? path : `${path}/${name}`
  }

  /** Does something, and explains a refusal. @param what as in "could not …" */
  #do<T>(what: string, act: () => Promise<T>): Promise<T> {
    return explained(`The cluster could not ${what}: `, (refusal) => this.#explain(refusal), act)
  }

  #explain({ status, message }: EngineRefusal): string {
    const said = sentence(message)
    if (status === 404 && message.startsWith('namespaces '))
      return `${said} Create it: kubectl create namespace ${this.namespace}`
    if (status !== 403) return said
    if (/\bquota\b/.test(message))
      return `${said} Stop other servers, or have the quota of the namespace raised.`
    if (message.includes('RuntimeClass')) return `${said} Name another one with --kubernetes-runtime-class.`
    if (message.includes('violates PodSecurity'))
      return `${said} Use another namespace, or a server without root.`
    if (/\b(?:maximum|minimum) /.test(message))
      return `${said} Choose another tier, or have the limit range of the namespace changed.`
    if (!message.includes(' cannot ')) return said
    return `${said} Bind the Role to the account that "berth kubernetes manifest" prints.`
  }
}

/** Throws `ServerGone` if a pod is gone or has ended. */
function assertRuns(pod: Pod | null): asserts pod is Pod {
  const end = pod === null ? REMOVED : endOf(pod)
  if (end !== null) throw new ServerGone(end)
}

/** Says that the node of a pod does not respond, a sentence. */
const silenceOf = ({ spec }: Pod): string =>
  `The node ${spec.nodeName} does not respond to its cluster, so the server on it cannot be reached.`

const unreachable = (pod: Pod): StorageLost =>
  new StorageLost(
    silenceOf(pod),
    ` It goes on when the node is back. If it is gone for good: berth servers recover ${instanceOf(pod).labels.server}.`,
  )
