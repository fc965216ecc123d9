import { type Command, Option } from 'commander'
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

/** Adds the options by which every command that talks to the API of an instance finds it. */
export const withConnection = (command: Command): Command =>
  connectedBy(command, new Option('--api-key <KEY>', 'the key to use [BERTH_API_KEY]'))

/**
 * Adds the options by which every command that talks to the control API of an instance finds it.
 *
 * @param folder the option for the data folder, where `--data` means something else to the command
 */
export const withControl = (command: Command, folder: DataOption = '--data'): Command =>
  connectedBy(command, new Option('--admin-token <TOKEN>', 'the admin token [BERTH_ADMIN_TOKEN]'), folder)

/** What names the data folder. */
type DataOption = '--data' | '--data-dir'

function connectedBy(command: Command, credential: Option, folder: DataOption = '--data'): Command {
  const options = [
    new Option('--base-url <URL>', 'the instance to talk to [BERTH_BASE_URL]'),
    credential,
    new Option(`${folder} <DIR>`, 'else: the instance of this data folder [BERTH_DATA]'),
  ]
  for (const option of options) command.addOption(option.helpGroup('Connection:'))
  return command
}

/** Adds `--json` for programs. */
export const withJson = (command: Command): Command =>
  command.option('--json', "print the API's answer as JSON, for programs")

/** A client of the API for the instance that the options, the environment or the data folder name. */
export const connect = (session: Session, options: ConnectionOptions): Promise<Client> =>
  clientOf(session, options, 'api')

/** A client of its control API, which takes paths that begin with `/_berth`. */
export const connectControl = (session: Session, options: ConnectionOptions): Promise<Client> =>
  clientOf(session, options, 'control')

async function clientOf(session: Session, options: ConnectionOptions, entrance: Entrance): Promise<Client> {
  const [{ Client }, { findInstance }] = await Promise.all([import('./client.ts'), import('./instance.ts')])
  const instance = findInstance(options, session.terminal, entrance)
  reachLoopbackDirectly()
  return new Client(instance)
}

/** Prints an answer as one line of JSON. */
export const printJson = (session: Session, answer: unknown): Promise<void> =>
  session.terminal.stdout.write(`${JSON.stringify(answer)}\n`)
