import { reachLoopbackDirectly } from '../runtime/process-environment.ts'
import type { Client } from './client.ts'
import type { ApiKind, ConnectionOptions } from './find-instance.ts'
import type { NameSources } from './names.ts'
import type { ProcessContext } from './process-context.ts'

/** State that the commands of one invocation share. */
export interface CliSession {
  readonly context: ProcessContext
  readonly names: NameSources
  /** Exit code of the process, set by a command. */
  exitCode: number
}

/** Returns a client for the instance that the options, the environment or the data directory name. */
export async function connect(
  { context }: CliSession,
  options: ConnectionOptions,
  api: ApiKind,
): Promise<Client> {
  const [{ Client }, { findInstance }] = await Promise.all([
    import('./client.ts'),
    import('./find-instance.ts'),
  ])
  const instance = findInstance(options, context, api)
  reachLoopbackDirectly()
  return new Client(instance)
}
