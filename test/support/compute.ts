import { join } from 'node:path'
import { namesIn } from '../../src/runtime/if-present.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { VERSION } from '../../src/runtime/version.ts'

/**
 * What runs the servers of this run of tests, in place of this machine: `BERTH_TEST_COMPUTE=docker`, with the engine at
 * `BERTH_TEST_ENGINE`, such as `unix:///run/docker.sock`. The engine needs the image of this version.
 */
const compute = process.env.BERTH_TEST_COMPUTE ?? ''
const engine = process.env.BERTH_TEST_ENGINE ?? ''

/** Whether servers are processes of this machine, which a test may look for. */
export const isLocalCompute = compute === ''

/** The variables by which a berth of this run chooses what runs servers. */
export const computeEnvironment: Readonly<Record<string, string>> = {
  ...(compute === '' ? {} : { BERTH_COMPUTE: compute }),
  ...(engine === '' ? {} : { BERTH_ENGINE: engine }),
}

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
