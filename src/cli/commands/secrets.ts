import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { ProjectSecrets, SecretChanges, ServerSecrets } from '../../resources/secrets/model.ts'
import { chooseServer } from '../choose-server.ts'
import { CommandError } from '../errors.ts'
import type { ConnectionOptions } from '../instance.ts'
import { path } from '../path.ts'
import { findProject } from '../projects/find.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { isVariableName, parsePairs, readVariables, type Variables } from '../variables.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  server?: string
  project?: string
}

/** The names that are set now. */
type Answer = ProjectSecrets | ServerSecrets

const MORE = `
With --project they are those of a project, else those of a whole server: all its commands and apps get them,
and a project's own win. Apps that they concern are restarted; a bring-up that waited for them goes on.
Values are never shown.
`

const MORE_SET = `
NAME alone asks for the value and shows nothing of it; in a script it takes the value from standard input.
So it stands neither in the history of the shell nor in the list of processes.

Examples:
  berth secrets set TOKEN --project shop
  pass show shop/token | berth secrets set TOKEN --project shop
  berth secrets set MODE=production REGION=eu
`

/** Adds `secrets` and what can be done with them. */
export function registerSecrets(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const secrets = program
    .command('secrets')
    .helpCommand(false)
    .summary('set environment variables of servers and projects')
    .description(
      'Sets environment variables of servers and projects. Plain "berth secrets" lists the names of those that are set.',
    )
  const add = (usage: string, description: string) =>
    withConnection(withJson(secrets.command(usage).description(description)))
      .option('--server <SERVER>', 'of this server; needed where there are several')
      .option('--project <PROJECT>', 'of this project')

  add('list', 'list the names of those that are set').action(async (options: Options) => {
    const send = await sender(session, options)
    // A change of nothing answers with the names.
    const answer = await send({})
    if (options.json) return printJson(session, answer)
    if (answer.keys.length === 0) return stdout.write(`Nothing is set for ${ownerOf(answer)}.\n`)
    await stdout.write(answer.keys.map((name) => `${name}\n`).join(''))
  })

  /** Sends changes, once they are known, and says so. */
  const change = async (options: Options, verb: string, changesOf: () => Promise<SecretChanges>) => {
    const send = await sender(session, options)
    const changes = await changesOf()
    const answer = await send(changes)
    if (options.json) return printJson(session, answer)
    await stdout.write(`${verb} ${Object.keys(changes).join(', ')} for ${ownerOf(answer)}.\n`)
  }

  add('set <VARIABLE...>', 'set some, each given as NAME=VALUE or as NAME alone')
    .usage('<NAME[=VALUE]...> [options]')
    .addHelpText('after', MORE + MORE_SET)
    .action((given: string[], options: Options) => {
      checkNames(
        given.map((one) => one.split('=', 1)[0] ?? ''),
        'NAME=VALUE or NAME',
      )
      return change(options, 'Set', () => valuesOf(given, session.terminal))
    })

  add('unset <NAME...>', 'remove some')
    .addHelpText('after', MORE)
    .action((names: string[], options: Options) => {
      checkNames(names, 'a name')
      return change(options, 'Removed', async () => Object.fromEntries(names.map((name) => [name, null])))
    })

  add('import <FILE>', 'set all that a .env file has; - is standard input')
    .addHelpText('after', MORE)
    .action((file: string, options: Options) => {
      const read = async () => {
        const variables = await readVariables(file, session.terminal)
        if (Object.keys(variables).length > 0) return variables
        throw new CommandError(`${file === '-' ? 'Standard input' : file} has no variable.`)
      }
      return change(options, 'Set', read)
    })
}

/** Finds out whose variables are meant, and how they are changed. */
async function sender(
  session: Session,
  options: Options,
): Promise<(changes: SecretChanges) => Promise<Answer>> {
  const { server, project } = options
  if (server !== undefined && project !== undefined)
    throw new UsageError('Name the server or the project, not both: a project lies on one server.')
  const client = await connect(session, options)
  if (project !== undefined) {
    const { id } = await findProject(client, project)
    return (secrets) => client.request('PUT', path`/projects/${id}/secrets`, { body: { secrets } })
  }
  const server_id = await chooseServer(client, server, ', or a project with --project')
  return (secrets) => client.request('PUT', '/secrets', { body: { server_id, secrets } })
}

const ownerOf = (answer: Answer): string => ('project_id' in answer ? answer.project_id : answer.server_id)

/** What is wrong may be a secret: it is told by its place. */
function checkNames(names: readonly string[], expected: string): void {
  const at = names.findIndex((name) => !isVariableName(name))
  if (at >= 0) {
    throw new UsageError(
      `Number ${at + 1} of the words is not ${expected}; names have letters, digits and "_".`,
    )
  }
}

/** Values as they stand on the command line; those that do not are asked for, or come from a pipe. */
async function valuesOf(given: readonly string[], terminal: Terminal): Promise<Variables> {
  const pairs = given.filter((one) => one.includes('='))
  const asked = given.filter((one) => !one.includes('='))
  const values = asked.length === 0 ? [] : await askedValues(asked, terminal)
  return {
    ...parsePairs(pairs, 'secrets set'),
    ...Object.fromEntries(asked.map((name, at) => [name, values[at] ?? ''])),
  }
}

async function askedValues(names: readonly string[], terminal: Terminal): Promise<string[]> {
  const values = terminal.stdin.isTTY
    ? await (await import('../hidden-input.ts')).askHidden(
        names.map((name) => `Value of ${name} (not shown)`),
        terminal,
      )
    : await pipedValue(names, terminal)
  const empty = names.find((_, at) => !values[at])
  if (empty === undefined) return values
  throw new CommandError(`There was no value for ${empty}; nothing was set. Give an empty one as ${empty}=`)
}

async function pipedValue(names: readonly string[], { stdin }: Terminal): Promise<string[]> {
  if (names.length > 1) {
    throw new UsageError(
      'Standard input gives the value of one name. For several, pipe NAME=VALUE lines to: berth secrets import -',
    )
  }
  const bytes = await stdin.bytes()
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    // The newline at the end is the pipe's, not the value's.
    return [text.replace(/\r?\n$/, '')]
  } catch {
    throw new CommandError('The value on standard input is not UTF-8 text. Set it as base64, for one.')
  }
}
