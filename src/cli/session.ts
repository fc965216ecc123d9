import { reachLoopbackDirectly } from '../runtime/process-environment.ts'
import { shellQuote } from '../runtime/shell-quote.ts'
import type { Client } from './client.ts'
import { CommandError } from './errors.ts'
import type { ApiKind, InstanceConnection, InstanceOptions } from './find-instance.ts'
import type { NameSources } from './names.ts'
import { printable } from './output.ts'
import type { ProcessContext } from './process-context.ts'

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
 * @throws CommandError as `locateInstance` does
 */
export async function connect(
  { context }: CliSession,
  options: InstanceOptions,
  api: ApiKind,
): Promise<Client> {
  const [{ Client }, instance] = await Promise.all([
    import('./client.ts'),
    locateInstance(context, options, api),
  ])
  reachLoopbackDirectly()
  return new Client(instance)
}

/**
 * Finds the instance of a command, as `findInstance` does.
 *
 * @throws CommandError if there is none, with the user's instances on other directories; if there is no credential for its
 * address; if nothing listens there
 */
export async function locateInstance(
  { env, cwd }: ProcessContext,
  options: InstanceOptions,
  api: ApiKind,
): Promise<InstanceConnection> {
  const { findInstance, NoCredentialError, NoInstanceError } = await import('./find-instance.ts')
  try {
    return findInstance(options, { env, cwd }, api)
  } catch (error) {
    if (error instanceof NoCredentialError && !(await isListening(error.baseUrl)))
      throw new CommandError(
        `Nothing answers at ${error.baseUrl}. Start it with "berth serve", or correct the address; "berth list" shows what runs here.`,
      )
    if (!(error instanceof NoInstanceError)) throw error
    const { listInstances } = await import('./instances/registry.ts')
    const [first, ...others] = listInstances(env)
    if (first === undefined) throw error
    if (others.length > 0)
      throw new CommandError(
        `${error.message} ${others.length + 1} run on other directories: "berth list" shows them.`,
      )
    const { data_dir, base_url } = first
    throw new CommandError(
      `${error.missing} One runs on ${data_dir}, at ${base_url}: for all commands of this shell, export BERTH_DATA=${shellQuote([data_dir])}\nElse ${error.remedy}`,
    )
  }
}

/**
 * Returns options that name the only instance that this user keeps running, and says so on stderr, if the given ones find
 * none. Returns the given ones if there is another number of instances, or if they name a directory. For commands that
 * read or create: one that destroys must be sure which instance is meant.
 */
export async function orOnlyInstance(
  { env, cwd, stderr }: ProcessContext,
  options: InstanceOptions,
  api: ApiKind,
): Promise<InstanceOptions> {
  if (options.data !== undefined || env.BERTH_DATA) return options
  const { findInstance, NoInstanceError } = await import('./find-instance.ts')
  try {
    findInstance(options, { env, cwd }, api)
    return options
  } catch (error) {
    if (!(error instanceof NoInstanceError)) return options
    const { listInstances } = await import('./instances/registry.ts')
    const [only, ...others] = listInstances(env).filter(({ started_by }) => started_by !== 'run')
    if (only === undefined || others.length > 0) return options
    await stderr.write(
      `${error.missing} Using the only one that runs, on ${printable(only.data_dir)}, at ${only.base_url}.\n`,
    )
    return { ...options, data: only.data_dir }
  }
}

/** Reports whether a program listens at an address, which is sent nothing. */
async function isListening(baseUrl: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(baseUrl)
  const at = {
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
  }
  try {
    const socket = await Bun.connect({ ...at, socket: { data() {} } })
    socket.end()
    return true
  } catch {
    // Refused, or no such host.
    return false
  }
}
