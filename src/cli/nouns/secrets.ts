import { UsageError } from '../../errors.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { SecretChanges } from '../../resources/secrets/model.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import { utf8Text } from '../../runtime/decode.ts'
import type { Client } from '../client.ts'
import { action, type Invocation, type Noun } from '../command.ts'
import { CommandError } from '../errors.ts'
import { type OptionsOf, textOption } from '../options.ts'
import { printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { missingVariablesText } from '../projects/report.ts'
import { isVariableName, parsePairs, readVariables, type VariableValues } from '../variables.ts'
import { findProject } from './projects.ts'

/** The owner of secrets and the names of its secrets. */
type Secrets = ResponseOf<'secrets.set'> | ResponseOf<'projectSecrets.set'>

const owner = {
  server: textOption('SERVER', 'of this server; needed where there are several'),
  project: textOption('PROJECT', 'of this project'),
}

const HELP = `
With --project they are those of a project, else those of a whole server: all its commands and apps get them,
and a project's own win. Apps that run are restarted at once, and the old one answers until the new one does; a
bring-up that waited for them goes on. Terminals and commands that run already do not get them. Values are never shown.
`

/** `berth secrets` */
export const secretsNoun: Noun = {
  name: 'secrets',
  summary: 'set environment variables of servers and projects',
  description:
    'Sets environment variables of servers and projects. Plain "berth secrets" lists the names of those that are set.',
  commands: [
    action({
      usage: 'list',
      operations: ['projectSecrets.list'],
      description: 'list the names of those that are set; with --project also those that its code asks for',
      access: 'api',
      options: owner,
      async run(invocation) {
        const { print, options, connect } = invocation
        if (options.project !== undefined && options.server === undefined) {
          const client = await connect()
          const { id: projectId } = await findProject(client, options.project)
          const found = await client.call('projectSecrets.list', { params: { projectId } })
          await print(found, variablesText)
          return
        }
        const send = await secretsSetter(invocation)
        // The response to an empty change contains the names.
        await print(
          await send({}),
          (response) => linesOf(response.keys) || `Nothing is set for ${ownerOf(response)}.\n`,
        )
      },
    }),
    action({
      usage: 'set <VARIABLE...>',
      operations: ['secrets.set', 'projectSecrets.set'],
      shownUsage: '<NAME[=VALUE]...> [options]',
      description: 'set some, each given as NAME=VALUE or as NAME alone',
      access: 'api',
      options: owner,
      help: `${HELP}
NAME alone asks for the value and shows nothing of it; in a script it takes the value from standard input.
So it is neither in the history of the shell nor in the list of processes.

Examples:
  berth secrets set TOKEN --project shop
  pass show shop/token | berth secrets set TOKEN --project shop
  berth secrets set MODE=production REGION=eu
`,
      run(invocation) {
        const { args, session } = invocation
        checkPairs(args[0])
        return changeSecrets(invocation, 'Set', () => valuesOf(args[0], session.context))
      },
    }),
    action({
      usage: 'unset <NAME...>',
      aliases: ['delete', 'rm'],
      description: 'remove some',
      access: 'api',
      options: owner,
      help: HELP,
      run(invocation) {
        const [names] = invocation.args
        checkNames(names, 'a name')
        return unsetSecrets(invocation, names)
      },
    }),
    action({
      usage: 'import <FILE>',
      description: 'set all that a .env file has; - is standard input',
      access: 'api',
      options: owner,
      help: HELP,
      run(invocation) {
        const [file] = invocation.args
        return changeSecrets(invocation, 'Set', async () => {
          const variables = await readVariables(file, invocation.session.context)
          if (Object.keys(variables).length > 0) return variables
          throw new CommandError(`${file === '-' ? 'Standard input' : file} has no variable.`)
        })
      },
    }),
  ],
}

/** Computes changes, sends them, and prints the changed names. */
async function changeSecrets(
  invocation: Invocation<unknown, OptionsOf<typeof owner>>,
  verb: string,
  changesOf: () => Promise<SecretChanges>,
): Promise<number> {
  const send = await secretsSetter(invocation)
  const changes = await changesOf()
  return invocation.print(
    await send(changes),
    async (response) =>
      `${verb} ${Object.keys(changes).join(', ')} for ${ownerOf(response)}.\n${await effectOf(await invocation.connect(), response)}`,
  )
}

/** Removes those of the names that are set, and says which are not: like a shell, it takes that for no failure. */
async function unsetSecrets(
  invocation: Invocation<unknown, OptionsOf<typeof owner>>,
  names: readonly string[],
): Promise<number> {
  const send = await secretsSetter(invocation)
  // The response to an empty change contains the names.
  const before = await send({})
  const present = names.filter((name) => before.keys.includes(name))
  const absent = names.filter((name) => !before.keys.includes(name))
  const after =
    present.length === 0 ? before : await send(Object.fromEntries(present.map((name) => [name, null])))
  return invocation.print(after, async () => {
    const removed =
      present.length === 0
        ? ''
        : `Removed ${present.join(', ')} for ${ownerOf(after)}.\n${await effectOf(await invocation.connect(), after)}`
    return `${removed}${linesOf(absent.map((name) => `${name} is not set for ${ownerOf(after)}.`))}`
  })
}

/** Says which apps get a change, and how; empty if that cannot be found out. */
async function effectOf(client: Client, changed: Secrets): Promise<string> {
  try {
    return 'project_id' in changed
      ? await projectEffect(client, changed.project_id)
      : await serverEffect(client, changed.server_id)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    // It is set all the same.
    return ''
  }
}

/** Determines the owner of the secrets. Returns a function that changes them. */
async function secretsSetter({
  options: { server: named, project },
  connect,
  server,
}: Pick<Invocation<unknown, OptionsOf<typeof owner>>, 'options' | 'connect' | 'server'>): Promise<
  (changes: SecretChanges) => Promise<Secrets>
> {
  if (named !== undefined && project !== undefined)
    throw new UsageError('Name the server or the project, not both: a project lies on one server.')
  const client = await connect()
  if (project !== undefined) {
    const { id: projectId } = await findProject(client, project)
    return (secrets) => client.call('projectSecrets.set', { params: { projectId }, body: { secrets } })
  }
  const server_id = await server(', or a project with --project')
  return (secrets) => client.call('secrets.set', { body: { server_id, secrets } })
}

const linesOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

/** Returns the names of a project's variables, one a line, and what its code asks for that is not set. */
function variablesText({ project_id: id, keys, variables }: ResponseOf<'projectSecrets.list'>): string {
  const unset = variables.filter(({ set_for }) => set_for === null)
  const asked = unset.map(({ name, missing, default: value, description }) => {
    const state = missing ? 'missing' : value === null ? 'optional' : `default ${printable(value)}`
    return `${name} (${state})${description === null ? '' : `: ${printable(description)}`}`
  })
  const all = linesOf(keys) || `Nothing is set for ${id}.\n`
  return asked.length === 0
    ? all
    : `${all}\nIts code also asks for\n${linesOf(asked.map((line) => `  ${line}`))}`
}

const ownerOf = (secrets: Secrets): string =>
  'project_id' in secrets ? secrets.project_id : secrets.server_id

/** Checks names of variables. The message gives only the position of a wrong word, which may be a secret. */
function checkNames(names: readonly string[], expected: string): void {
  const at = names.findIndex((name) => !isVariableName(name))
  if (at >= 0) {
    throw new UsageError(
      `Number ${at + 1} of the words is not ${expected}; names have letters, digits and "_".`,
    )
  }
}

/** Matches what a person means as a name, though no variable can have it. */
const LIKE_NAME = /^\w[\w.-]{0,40}$/

/** Checks what `set` is given. Values are not shown, as they may be secret. */
function checkPairs(given: readonly string[]): void {
  const [first = '', second = '', ...others] = given
  const isSplit =
    others.length === 0 &&
    /^[A-Z][A-Z0-9_]*$/.test(first) &&
    !second.includes('=') &&
    /[^A-Z0-9_]/.test(second)
  if (isSplit)
    throw new UsageError(
      `Number 2 of the words is not NAME=VALUE or NAME in capitals. Did you mean ${first}=VALUE, as one word?`,
    )
  const wrong = given
    .map((one) => /^([^=]+)=[^=]/.exec(one)?.[1] ?? '')
    .find((name) => LIKE_NAME.test(name) && !isVariableName(name))
  if (wrong !== undefined)
    throw new UsageError(`"${wrong}" is not a name of a variable: names have letters, digits and "_".`)
  checkNames(
    given.map((one) => one.split('=', 1)[0] ?? ''),
    'NAME=VALUE or NAME',
  )
}

/** Returns the values on the command line. Asks for missing ones, or reads them from a pipe. */
async function valuesOf(given: readonly string[], context: ProcessContext): Promise<VariableValues> {
  const pairs = given.filter((one) => one.includes('='))
  const missing = given.filter((one) => !one.includes('='))
  const values = missing.length === 0 ? [] : await askedValues(missing, context)
  return {
    ...parsePairs(pairs, 'secrets set'),
    ...Object.fromEntries(missing.map((name, at) => [name, values[at] ?? ''])),
  }
}

async function askedValues(names: readonly string[], context: ProcessContext): Promise<string[]> {
  const values = context.stdin.isTTY
    ? await (await import('../prompt.ts')).promptHidden(
        names.map((name) => `Value of ${name} (not shown)`),
        context,
      )
    : await pipedValue(names, context)
  const empty = names.find((_, at) => !values[at])
  if (empty === undefined) return values
  throw new CommandError(`There was no value for ${empty}; nothing was set. Give an empty one as ${empty}=`)
}

async function pipedValue(names: readonly string[], { stdin }: ProcessContext): Promise<string[]> {
  if (names.length > 1) {
    throw new UsageError(
      'Standard input gives the value of one name. For several, pipe NAME=VALUE lines to: berth secrets import -',
    )
  }
  const bytes = await stdin.bytes()
  const text = utf8Text(bytes)
  if (text === null)
    throw new CommandError('The value on standard input is not UTF-8 text. Set it as base64, for one.')
  // The trailing newline belongs to the pipe, not to the value.
  return [text.replace(/\r?\n$/, '')]
}

/**
 * Says what a change of a project's variables leads to, as lines.
 *
 * @throws CommandError
 */
async function projectEffect(client: Client, projectId: string): Promise<string> {
  const project = await client.call('projects.get', { params: { projectId } })
  const { slug, init_phase: phase, runtime_status: status } = project
  const logs = `berth projects logs ${slug}`
  if (phase === 'awaiting_secrets') {
    const { variables } = await client.call('projectSecrets.list', { params: { projectId } })
    if (variables.some(({ missing }) => missing)) return missingVariablesText(client, project)
  }
  if (restarts(project))
    return `${printable(slug)} restarts with the change; the version before answers until then. "${logs}" shows whether it came up.\n`
  if (status === 'paused') return `${printable(slug)} sleeps, and starts with the change.\n`
  if (phase === 'failed')
    return `${printable(slug)} is not up. Try again with: berth projects restart ${slug}\n`
  if (phase === null) return ''
  return phase === 'ready'
    ? ''
    : `The bring-up of ${printable(slug)} takes the change. Look at it with: ${logs} -f\n`
}

/**
 * Says what a change of a server's variables leads to, as lines.
 *
 * @throws CommandError
 */
async function serverEffect(client: Client, serverId: string): Promise<string> {
  const params = { serverId }
  const [{ projects }, { deployments }, { terminals }] = await Promise.all([
    client.call('projects.list', { params }),
    client.call('deployments.list', { params }),
    client.call('terminals.list', { params }),
  ])
  const apps = projects.filter(restarts).map(({ slug }) => printable(slug))
  if (deployments.some(({ live }) => live)) apps.push('what the server publishes, if that is an app')
  const isOpen = terminals.some(({ exit_code: code }) => code === null)
  return [
    apps.length > 0 ? `Apps restart with the change, and answer meanwhile: ${apps.join(', ')}.\n` : '',
    isOpen ? 'Terminals that are open do not get it: open new ones with "berth shell".\n' : '',
  ].join('')
}

/** Reports whether the app of a project runs, or is to run, so that a change of its variables restarts it. */
const restarts = ({ app, runtime_status: status, init_phase: phase, crash }: Project): boolean =>
  Boolean(app?.start) &&
  (status === 'running' || crash !== undefined) &&
  (phase === 'ready' || phase === 'failed')
