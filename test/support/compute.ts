import { join } from 'node:path'
import { namesIn } from '../../src/runtime/if-present.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { VERSION } from '../../src/runtime/version.ts'

const {
  BERTH_TEST_COMPUTE: compute = '',
  BERTH_TEST_ENGINE: engine = '',
  BERTH_TEST_KUBECONFIG: kubeconfig = '',
  BERTH_TEST_NAMESPACE: namespace = 'berth-tests',
  BERTH_TEST_SERVER_IMAGE: image = `berth-server:${VERSION}`,
} = process.env

/**
 * The cluster that runs servers in place of one of the tests' own: the path of its kubeconfig, or an empty text without one,
 * the namespace of servers and their image, which has to be that of this version.
 */
export const givenCluster = { kubeconfig, namespace, image } as const

/** Whether servers are processes of this machine, which a test may look for. */
export const isLocalCompute = compute === ''

const VARIABLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  docker: { BERTH_COMPUTE: 'docker', BERTH_ENGINE: engine },
  kubernetes: {
    ...{ BERTH_COMPUTE: 'kubernetes', BERTH_KUBECONFIG: kubeconfig, BERTH_KUBERNETES_NAMESPACE: namespace },
    ...{ BERTH_SERVER_IMAGE: image, BERTH_PULL: 'missing', BERTH_SERVER_LEASE: '15s' },
  },
}

/**
 * The variables by which a berth of this run chooses what runs servers: this machine, or what `BERTH_TEST_COMPUTE` names. That
 * is `docker`, the engine at `BERTH_TEST_ENGINE`, which has the image of this version, or `kubernetes`, the given cluster.
 */
export const computeEnvironment: Readonly<Record<string, string>> = VARIABLES[compute] ?? {}

/** The signal that ends a berth whose test is over: after a kill, servers elsewhere stay for their lease, and take up room. */
export const END_SIGNAL = isLocalCompute ? 'SIGKILL' : 'SIGTERM'

/** How many servers run side by side here at least: a node with two processors takes eight. */
export const MOST_SERVERS = compute === 'kubernetes' ? 8 : 100

/** Returns the ids of the servers of a data directory that have files, also of those that its database does not name. */
export async function serversWithFiles(dataDir: string): Promise<string[]> {
  if (isLocalCompute) return namesIn(join(dataDir, 'servers')).sort()
  const [{ NO_PROVISIONS, openEngine }, { EngineNotes }, { loadConfig }] = await Promise.all([
    import('../../src/compute/drivers.ts'),
    import('../../src/compute/engine/owner.ts'),
    import('../../src/config/load.ts'),
  ])
  const notes = new EngineNotes(dataDir)
  if (!notes.hasOwner) return []
  const config = loadConfig({ flags: {}, env: computeEnvironment, cwd: dataDir })
  const logger = createLogger('silent', () => {}, Date.now)
  const { engine } = await openEngine(compute === 'kubernetes' ? compute : 'docker', {
    ...{ ...NO_PROVISIONS, config, logger, version: VERSION, dataDir, ephemeral: false },
  })
  const { storages } = await engine.list(notes.owner)
  return storages.map(({ labels }) => labels.server).sort()
}

/** Returns flags without the isolation, which is of this machine, if servers are elsewhere. */
export function forCompute(args: readonly string[]): string[] {
  if (isLocalCompute) return [...args]
  return args.filter((arg, index) => arg !== '--isolation' && args[index - 1] !== '--isolation')
}
