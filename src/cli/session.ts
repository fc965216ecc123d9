import { reachLoopbackDirectly } from '../config/config.ts'
import type { Client } from './client.ts'
import type { ConnectionOptions, Entrance } from './instance.ts'
import type { Terminal } from './terminal.ts'

/** What the commands of one invocation share. */
export interface Session {
  readonly terminal: Terminal
  /** The code the process exits with; a command sets it. */
  exitCode: number
}

/** Returns a client for the instance that the options, the environment or the data directory name. */
export async function connect(
  { terminal }: Session,
  options: ConnectionOptions,
  entrance: Entrance,
): Promise<Client> {
  const [{ Client }, { findInstance }] = await Promise.all([import('./client.ts'), import('./instance.ts')])
  const instance = findInstance(options, terminal, entrance)
  reachLoopbackDirectly()
  return new Client(instance)
}
