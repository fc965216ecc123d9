import { selfCommand } from '../../compute/self.ts'
import type { Config } from '../../config/config.ts'
import { type Berth, startBerth } from '../../instance/start.ts'
import { createLogger } from '../../runtime/logger.ts'
import type { ProcessContext } from '../process-context.ts'
import { versionInfo } from '../version.ts'
import type { StartedBy } from './registry.ts'

/** Callbacks of an instance in this process. */
export interface Listeners {
  /** Receives each line of its log, newline included. */
  log: (line: string) => void
  /** Receives each request with its response. */
  observe?: (request: Request, response: Response) => void
  /** Resolves when the process has to end, even while the instance starts. */
  stopRequested?: Promise<void>
}

/**
 * Starts a berth in this process.
 *
 * @throws StartupError if it cannot start
 */
export function startInstance(
  config: Config,
  { env }: ProcessContext,
  { log, ...listeners }: Listeners,
): Promise<Berth> {
  return startBerth(config, {
    version: versionInfo().version,
    logger: createLogger(config.logLevel, log, Date.now),
    sinceStartMs: () => performance.now(),
    self: selfCommand(process.execPath, Bun.main),
    path: env.PATH ?? '',
    environment: env,
    ...listeners,
  })
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
