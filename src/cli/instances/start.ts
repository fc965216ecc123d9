import type { Config } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { AddressTaken } from '../../http/listener.ts'
import { type Berth, startBerth } from '../../instance/start.ts'
import { createLogger } from '../../runtime/logger.ts'
import { selfCommand } from '../../runtime/self.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { readLastPort } from '../../storage/data-directory.ts'
import type { RunRecord } from '../../testing/testing.ts'
import type { ProcessContext } from '../process-context.ts'
import { versionInfo } from '../version.ts'
import type { StartedBy } from './registry.ts'

/** Callbacks of an instance in this process. */
export interface Listeners {
  /** Receives each line of its log, newline included. */
  log: (line: string) => void
  /** Records what happens, for a report. */
  record?: RunRecord
  /** Resolves when the process has to end, even while the instance starts. */
  stopRequested?: Promise<void>
}

/**
 * Starts a berth in this process.
 *
 * @throws StartupError if it cannot start
 */
export async function startInstance(
  config: Config,
  { env }: ProcessContext,
  { log, ...listeners }: Listeners,
): Promise<Berth> {
  const starting = startBerth(config, {
    version: versionInfo().version,
    logger: createLogger(config.logLevel, log, Date.now),
    sinceStartMs: () => performance.now(),
    self: selfCommand(),
    path: env.PATH ?? '',
    environment: env,
    commands: async () => (await import('../operation-commands.ts')).operationCommands(),
    ...listeners,
  })
  try {
    return await starting
  } catch (error) {
    throw error instanceof AddressTaken ? await nameOwner(error, env) : error
  }
}

const DEFAULT_PORT = 4747

/**
 * Starts a berth as `berth up` does, where the environment and the configuration file choose no port: on the usual one, or
 * if that is taken on the one of the last start, so that addresses stay, or if that is taken too on any free one.
 *
 * @param flags options by name, without `port`
 * @throws UsageError, StartupError if it cannot start
 */
export async function startAtFreePort(
  flags: Record<string, unknown>,
  context: ProcessContext,
  listeners: Listeners,
): Promise<Berth> {
  const { env, cwd } = context
  const config = loadConfig({ flags, env, cwd })
  try {
    return await startInstance(config, context, listeners)
  } catch (error) {
    if (!(error instanceof AddressTaken)) throw error
    const isChosen = config.port !== DEFAULT_PORT || env.BERTH_PORT !== undefined
    // "berth up" has no --port.
    const choice = 'Choose another with BERTH_PORT or in berth.config.json.'
    if (isChosen) throw new AddressTaken(error.host, error.port, error.by, error.remedy, choice)
    const onPort = (port: number): Promise<Berth> =>
      startInstance(loadConfig({ flags: { ...flags, port: String(port) }, env, cwd }), context, listeners)
    const last = readLastPort(config.dataDir)
    if (last === null || last === DEFAULT_PORT) return onPort(0)
    return onPort(last).catch((error) => {
      if (error instanceof AddressTaken) return onPort(0)
      throw error
    })
  }
}

/** Returns the failure with the instance of `berth list` that has the port, if there is one, and how to stop it. */
async function nameOwner(error: AddressTaken, env: ProcessContext['env']): Promise<AddressTaken> {
  const { listInstances } = await import('./registry.ts')
  try {
    const owner = listInstances(env).find(({ base_url }) => Number(new URL(base_url).port) === error.port)
    if (owner === undefined) return error
    const { data_dir, pid } = owner
    return new AddressTaken(
      error.host,
      error.port,
      `the berth on ${data_dir} (pid ${pid})`,
      `Use that one, or stop it with: berth stop --data ${shellQuote([data_dir])}. `,
    )
  } catch {
    // The registry cannot be read. The port is taken all the same.
    return error
  }
}

/**
 * Adds the instance to `berth list`, after the process that waits for the start has its response.
 *
 * @returns a function that removes the entry
 */
export function registerWhenRecovered(
  { recovered, info }: Berth,
  startedBy: StartedBy,
  { env }: ProcessContext,
): () => void {
  let isOver = false
  let remove = () => {}
  void recovered
    .then(() => import('./registry.ts'))
    .then(({ registerInstance }) => {
      if (!isOver) remove = registerInstance(info, startedBy, env)
    })
  return () => {
    isOver = true
    remove()
  }
}
