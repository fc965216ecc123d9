/** Where servers run: the settings of this machine's isolations, of Docker engines and of Kubernetes. */

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

/** The settings of a Kubernetes cluster. */
export interface KubernetesConfig {
  /** Absolute paths of kubeconfig files, the first that sets a value wins; empty for those that are found. */
  readonly kubeconfig: readonly string[]
  /** A context of the kubeconfig; null for its current one. */
  readonly context: string | null
  /** The namespace of the servers; null for the context's. */
  readonly namespace: string | null
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
