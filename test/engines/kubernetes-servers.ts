import { afterAll, beforeAll, describe } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import { readAccess } from '../../src/compute/kubernetes/kubeconfig.ts'
import { KubernetesEngine } from '../../src/compute/kubernetes/kubernetes-engine.ts'
import type { Pod } from '../../src/compute/kubernetes/pod.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import type { KubernetesConfig } from '../../src/config/compute.ts'
import { messageOf } from '../../src/runtime/error-info.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { Cluster, type ClusterOptions } from '../support/kubernetes/cluster.ts'
import { missingForCluster } from '../support/kubernetes/executable.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'

/** The namespace of servers in clusters of tests. */
export const NAMESPACE = 'servers'

/** Path in the API of what is in that namespace. */
export const OBJECTS = `/api/v1/namespaces/${NAMESPACE}`

/** The executable that the image of servers has. */
export const EXECUTABLE = process.env.BERTH_TEST_EXECUTABLE ?? ''

/** Reports whether this machine cannot run a cluster for tests, and prints why. @param tests what is passed over then */
export function lacksCluster(tests: string): boolean {
  const missing = EXECUTABLE === '' ? 'Its image needs the executable.' : missingForCluster()
  if (missing !== null) console.error(`SKIP ${tests}: ${missing}`)
  return missing !== null
}

/** What tests on a cluster of their own have, as soon as the first of them begins. */
interface ClusterBench {
  cluster: Cluster
  /** A driver of servers there. */
  driver: EngineDriver
  /** Absolute path of a directory that is removed after the tests. */
  directory: string
}

/** Runs tests on a cluster that is started for them, or prints why this machine cannot. */
export function onCluster(
  title: string,
  options: Omit<ClusterOptions, 'executable'> & { leaseMs?: number },
  tests: (on: ClusterBench) => void,
): void {
  describe.skipIf(lacksCluster(title))(title, () => {
    const { leaseMs = null, ...nodes } = options
    const on = {} as ClusterBench
    beforeAll(async () => {
      on.directory = mkdtempSync(join(tmpdir(), 'berth-pods-'))
      on.cluster = await Cluster.start({ ...nodes, executable: EXECUTABLE })
      await on.cluster.makeNamespace(NAMESPACE)
      const engine = await engineOn(on.cluster.kubeconfig)
      on.driver = driverOfEngine(engine, join(on.directory, 'driver'), SERVER_IMAGE, leaseMs)
    }, 120_000)
    afterAll(async () => {
      await on.cluster?.[Symbol.asyncDispose]()
      rmSync(on.directory, { recursive: true, force: true })
    }, 30_000)
    tests(on)
  })
}

/** An engine on the cluster of a kubeconfig. */
export async function engineOn(
  kubeconfig: string,
  config: Partial<KubernetesConfig> = {},
  { pulls } = { pulls: false },
): Promise<KubernetesEngine> {
  const none = {
    context: null,
    network: 'pod' as const,
    storageClass: null,
    runtimeClass: null,
    nodeSelector: {},
  }
  return new KubernetesEngine({
    access: await readAccess({ kubeconfig: [kubeconfig], context: null }, {}),
    config: { ...none, kubeconfig: [kubeconfig], namespace: NAMESPACE, ...config },
    pulls,
    toolsImage: SERVER_IMAGE,
  })
}

/** A driver of a data directory on an engine. */
export const driverOfEngine = (
  engine: KubernetesEngine,
  dataDir: string,
  image: string = SERVER_IMAGE,
  leaseMs: number | null = null,
): EngineDriver =>
  new EngineDriver({
    ...{ engine, dataDir, ephemeral: true, image, leaseMs },
    name: 'the cluster of the tests',
    logger: createLogger('error', (line) => process.stderr.write(line), Date.now),
    baseUrl: () => null,
    environment: () => ({}),
    prepareCaches: async () => {},
    provide() {},
  })

/** The pods of servers. */
export const podsIn = async ({ client }: Cluster): Promise<readonly Pod[]> =>
  (await client.list<Pod>(`${OBJECTS}/pods`)).items

/** Why an operation fails. */
export const failure = (operation: Promise<unknown>): Promise<string> =>
  operation.then(() => 'it succeeded', messageOf)

/** A sandbox that is stopped at the end of a block. */
export const disposable = (it: Sandbox): { it: Sandbox } & AsyncDisposable => ({
  it,
  [Symbol.asyncDispose]: () => it.stop(),
})

/** A command that prints 60 MB within 12 seconds, and what hashes its output. */
export class LongOutput {
  static readonly bytes = 60e6
  static readonly command =
    'n=0; while [ $n -lt 60 ]; do n=$((n+1)); head -c 1000000 /dev/zero | tr "\\0" "$(printf "\\\\$(printf %03o $((64 + n)))")"; sleep 0.2; done'
  readonly #hash = createHash('sha256')
  bytes = 0

  take(stream: 'stdout' | 'stderr', data: Uint8Array): void {
    if (stream !== 'stdout') return
    this.#hash.update(data)
    this.bytes += data.length
  }

  /** Reports whether the output is whole, and nothing came twice. */
  isWhole(): boolean {
    const wanted = createHash('sha256')
    for (let n = 1; n <= 60; n += 1) wanted.update(Buffer.alloc(1e6, 64 + n))
    return this.bytes === LongOutput.bytes && this.#hash.digest('hex') === wanted.digest('hex')
  }
}
