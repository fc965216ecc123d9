/**
 * Where servers run: the options of Docker engines, of Kubernetes, and of the images of servers. They decide with which
 * rights berth uses other machines, so a file that was just found may set none of them.
 */
import { UsageError } from '../errors.ts'
import { choiceValue, listValue } from './values.ts'

/** What can run servers: this machine, a Docker engine, or a Kubernetes cluster. */
export const COMPUTES = ['local', 'docker', 'kubernetes'] as const

/** Name of what runs servers. */
export type ComputeName = (typeof COMPUTES)[number]

/** When berth pulls an image: never, or if the engine does not have it. */
export const PULLS = ['never', 'missing'] as const

/** The settings of a Docker engine, which Podman speaks too. */
export interface EngineConfig {
  /** `unix://PATH`, `tcp://HOST:PORT` or `ssh://[USER@]HOST[:PORT]`, without a password; null for the one that is found. */
  readonly address: string | null
  /** Absolute path of the directory with `ca.pem`, `cert.pem` and `key.pem`; null for the one that is found. */
  readonly tlsDirectory: string | null
  /** Whether `tcp://` without TLS may lead off this machine. */
  readonly insecure: boolean
  /** `none`, `berth` for a network that berth makes and in which servers do not reach each other, or the name of one. */
  readonly network: string
  /** The engine's runtime, such as `runsc`; null for its default. */
  readonly runtime: string | null
}

/** The networks of servers in a cluster. */
const POD_NETWORKS = ['pod', 'none'] as const

/** The settings of a Kubernetes cluster. */
export interface KubernetesConfig {
  /** Absolute paths of kubeconfig files, the first that sets a value wins; empty for those that are found. */
  readonly kubeconfig: readonly string[]
  /** A context of the kubeconfig; null for its current one. */
  readonly context: string | null
  /** The namespace of the servers; null for the context's. */
  readonly namespace: string | null
  /** `pod` for that of all pods, `none` if policies of the namespace keep servers from it: berth gives them a way out. */
  readonly network: (typeof POD_NETWORKS)[number]
  /** The storage class of their claims; null for the cluster's default. */
  readonly storageClass: string | null
  /** The runtime class of their pods; null for the cluster's default. */
  readonly runtimeClass: string | null
  /** Labels that their nodes must have. */
  readonly nodeSelector: Readonly<Record<string, string>>
}

/** The settings of what runs servers. */
export interface ComputeConfig {
  readonly compute: 'auto' | ComputeName
  readonly engine: EngineConfig
  readonly kubernetes: KubernetesConfig
  /** The image of servers for which no other is chosen; null for berth's own, `berth-server:VERSION`. */
  readonly serverImage: string | null
  /** Patterns of further images that callers may choose, in which `*` stands for any characters. */
  readonly serverImages: readonly string[]
  /** The images of servers by their tier. */
  readonly serverImagesByTier: Readonly<Record<string, string>>
  /** Whether callers may ask for servers whose commands run as root of their container. */
  readonly allowRoot: boolean
  readonly pull: (typeof PULLS)[number]
  /**
   * Milliseconds without berth after which a server that runs elsewhere ends its processes; null for the driver's own,
   * 60 s, or 5 s at a socket of this machine.
   */
  readonly serverLeaseMs: number | null
}

/** Settings without options. */
export const COMPUTE_DEFAULTS: ComputeConfig = {
  compute: 'auto',
  engine: { address: null, tlsDirectory: null, insecure: false, network: 'none', runtime: null },
  kubernetes: {
    kubeconfig: [],
    context: null,
    namespace: null,
    network: 'pod',
    storageClass: null,
    runtimeClass: null,
    nodeSelector: {},
  },
  serverImage: null,
  serverImages: [],
  serverImagesByTier: {},
  allowRoot: false,
  pull: 'never',
  serverLeaseMs: null,
}

/** The options of what runs servers, as `CONFIG_OPTIONS` has them. */
export const COMPUTE_OPTIONS = [
  {
    name: 'compute',
    value: 'KIND',
    choices: ['auto', ...COMPUTES],
    description: `where servers run: auto, ${COMPUTES.join(', ')} (default auto)`,
    setting: 'compute',
    kind: choiceValue(['auto', ...COMPUTES]),
  },
  {
    name: 'engine',
    value: 'URL',
    description:
      'the Docker engine: unix:///PATH, tcp://HOST:PORT or ssh://[USER@]HOST (default what docker uses)',
    setting: 'engine.address',
    kind: { kind: 'engine' },
  },
  {
    name: 'engine-tls',
    value: 'DIR',
    description: 'directory with ca.pem, cert.pem and key.pem for the engine (default DOCKER_CERT_PATH)',
    setting: 'engine.tlsDirectory',
    kind: { kind: 'text' },
  },
  {
    name: 'engine-insecure',
    description: 'let tcp:// without TLS lead to another machine, whose network then controls that engine',
    setting: 'engine.insecure',
    kind: { kind: 'switch' },
  },
  {
    name: 'engine-network',
    value: 'NETWORK',
    description: 'network of servers on the engine: none, berth, or the name of one (default none)',
    setting: 'engine.network',
    kind: { kind: 'engineNetwork' },
  },
  {
    name: 'engine-runtime',
    value: 'NAME',
    description: "the engine's runtime for servers, such as runsc (default the engine's)",
    setting: 'engine.runtime',
    kind: { kind: 'text' },
  },
  {
    name: 'kubeconfig',
    value: 'FILES',
    description: 'kubeconfig files, with ":" between (default KUBECONFIG, else ~/.kube/config)',
    setting: 'kubernetes.kubeconfig',
    kind: listValue('files'),
  },
  {
    name: 'kubernetes-context',
    value: 'NAME',
    description: 'context of the kubeconfig (default its current one)',
    setting: 'kubernetes.context',
    kind: { kind: 'text' },
  },
  {
    name: 'kubernetes-namespace',
    value: 'NAME',
    description: "namespace of servers (default the context's)",
    setting: 'kubernetes.namespace',
    kind: { kind: 'text' },
  },
  {
    name: 'kubernetes-network',
    value: 'NETWORK',
    choices: POD_NETWORKS,
    description: 'network of servers: pod, or none where policies deny it (default pod)',
    setting: 'kubernetes.network',
    kind: choiceValue(POD_NETWORKS),
  },
  {
    name: 'kubernetes-storage-class',
    value: 'NAME',
    description: "storage class of servers' files (default the cluster's)",
    setting: 'kubernetes.storageClass',
    kind: { kind: 'text' },
  },
  {
    name: 'kubernetes-runtime-class',
    value: 'NAME',
    description: "runtime class of servers, such as gvisor (default the cluster's)",
    setting: 'kubernetes.runtimeClass',
    kind: { kind: 'text' },
  },
  {
    name: 'kubernetes-node-selector',
    value: 'LABELS',
    description: 'labels that nodes of servers must have, such as pool=berth,disk=ssd',
    setting: 'kubernetes.nodeSelector',
    kind: { kind: 'texts', example: '{"pool":"berth"}' },
  },
  {
    name: 'server-image',
    value: 'IMAGE',
    description: 'image of servers on an engine (default berth-server of this version)',
    setting: 'serverImage',
    kind: { kind: 'text' },
  },
  {
    name: 'server-images',
    value: 'PATTERNS',
    description: 'further images that callers may choose, such as "python:*,node:22" (default none)',
    setting: 'serverImages',
    kind: { kind: 'names', of: 'images' },
  },
  {
    name: 'server-images-by-tier',
    value: 'JSON',
    description: 'images of servers by tier, such as {"large":"python:3.13"}',
    setting: 'serverImagesByTier',
    kind: { kind: 'texts', example: '{"large":"python:3.13"}' },
  },
  {
    name: 'allow-root',
    description: 'let callers have servers whose commands are root of their container',
    setting: 'allowRoot',
    kind: { kind: 'switch' },
  },
  {
    name: 'pull',
    value: 'WHEN',
    choices: PULLS,
    description: 'pull images of servers: never, or those that are missing (default never)',
    setting: 'pull',
    kind: choiceValue(PULLS),
  },
  {
    name: 'server-lease',
    value: 'DURATION',
    description:
      'end servers elsewhere after this long without berth (default 60s; 5s at a socket of this machine)',
    setting: 'serverLeaseMs',
    kind: { kind: 'duration' },
  },
] as const

/**
 * Checks settings that go together, and returns where servers run: `--isolation` is about this machine.
 *
 * @throws UsageError
 */
export function computeOf(compute: ComputeConfig['compute'], isolation: string): ComputeConfig['compute'] {
  if (isolation === 'auto') return compute
  if (compute === 'auto' || compute === 'local') return 'local'
  throw new UsageError(
    `The isolation ${isolation} is for servers of this machine, and --compute ${compute} runs them elsewhere. Leave out one of --isolation and --compute.`,
  )
}
