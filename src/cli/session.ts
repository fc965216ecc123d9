import { type Command, Option } from 'commander'
import { reachLoopbackDirectly } from '../config.ts'
import type { Client } from './client.ts'
import type { ConnectionOptions } from './instance.ts'
import type { Terminal } from './terminal.ts'

/** What the commands of one invocation share. */
export interface Session {
  readonly terminal: Terminal
  /** The code the process exits with; a command sets it. */
  exitCode: number
}

/** Adds the options by which every command that talks to an instance finds it. */
export function withConnection(command: Command): Command {
  return command
    .addOption(
      new Option('--base-url <URL>', 'the instance to talk to [BERTH_BASE_URL]').helpGroup('Connection:'),
    )
    .addOption(new Option('--api-key <KEY>', 'the key to use [BERTH_API_KEY]').helpGroup('Connection:'))
    .addOption(
      new Option('--data <DIR>', 'else: the instance of this data folder [BERTH_DATA]').helpGroup(
        'Connection:',
      ),
    )
}

/** Adds `--json` for programs. */
export const withJson = (command: Command): Command =>
  command.option('--json', "print the API's answer as JSON, for programs")

/** A client for the instance that the options, the environment or the data folder name. */
export async function connect(session: Session, options: ConnectionOptions): Promise<Client> {
  const [{ Client }, { findInstance }] = await Promise.all([import('./client.ts'), import('./instance.ts')])
  const instance = findInstance(options, session.terminal)
  reachLoopbackDirectly()
  return new Client(instance)
}

/** Prints an answer as one line of JSON. */
export const printJson = (session: Session, answer: unknown): Promise<void> =>
  session.terminal.stdout.write(`${JSON.stringify(answer)}\n`)
