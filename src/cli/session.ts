import { reachLoopbackDirectly } from '../runtime/process-environment.ts'
import type { Client } from './client.ts'
import { CommandError } from './errors.ts'
import type { ApiKind, ConnectionOptions } from './find-instance.ts'
import type { ListedInstance } from './instances/registry.ts'
import type { NameSources } from './names.ts'
import type { ProcessContext } from './process-context.ts'
import { shellQuote } from './quote.ts'

/** State that the commands of one invocation share. */
export interface CliSession {
  readonly context: ProcessContext
  readonly names: NameSources
  /** Exit code of the process, set by a command. */
  exitCode: number
}

/**
 * Returns a client for the instance that the options, the environment or the data directory name.
 *
 * @throws CommandError if there is none, with the user's instances on other directories
 */
export async function connect(
  { context }: CliSession,
  options: ConnectionOptions,
  api: ApiKind,
): Promise<Client> {
  const [{ Client }, { findInstance, NoInstanceError }] = await Promise.all([
    import('./client.ts'),
    import('./find-instance.ts'),
  ])
  try {
    const instance = findInstance(options, context, api)
    reachLoopbackDirectly()
    return new Client(instance)
  } catch (error) {
    if (!(error instanceof NoInstanceError)) throw error
    const { listInstances } = await import('./instances/registry.ts')
    throw new CommandError(`${error.message}${elsewhereHint(listInstances(context.env))}`)
  }
}

/** Returns a sentence on the instances that run on other directories; empty if there are none. */
function elsewhereHint(instances: readonly ListedInstance[]): string {
  const [first, ...others] = instances
  if (first === undefined) return ''
  if (others.length > 0) return ` ${instances.length} run on other directories: "berth list" shows them.`
  const { data_dir, base_url } = first
  return ` One runs on ${data_dir}, at ${base_url}: for all commands of this shell, export BERTH_DATA=${shellQuote([data_dir])}.`
}
