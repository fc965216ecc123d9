import type { Command, Option } from 'commander'
import { UsageError } from '../errors.ts'
import type { Client } from './client.ts'
import type {
  CommandAccess,
  CommandSpec,
  CommonOptions,
  Invocation,
  Noun,
  RunnableCommand,
} from './command.ts'
import { takesServer } from './command-line.ts'
import type { ApiKind, InstanceOptions } from './find-instance.ts'
import { IdResolver } from './id-resolver.ts'
import { commanderOption, flag, inWordsOf, textOption } from './options.ts'
import { printResult } from './output.ts'
import { type CliSession, connect, orOnlyInstance } from './session.ts'
import type { TableLayout } from './table.ts'

/** Adds a noun with its commands to the program. */
export function addNoun(program: Command, session: CliSession, noun: Noun): void {
  const command = program.command(noun.name).helpCommand(false)
  command.summary(noun.summary).description(noun.description)
  if (noun.aliases) command.aliases([...noun.aliases])
  if (noun.help) command.addHelpText('after', noun.help)
  for (const one of noun.commands) {
    const [name = ''] = one.usage.split(' ')
    addCommand(command, session, { ...one, aliases: [...(SHORT_NAMES[name] ?? []), ...(one.aliases ?? [])] })
  }
}

/** The short names of commands that every noun has. */
const SHORT_NAMES: Readonly<Record<string, readonly string[]>> = { list: ['ls'], delete: ['rm'] }

/** Adds a command to the program, or to a noun. */
export function addCommand(parent: Command, session: CliSession, spec: RunnableCommand): void {
  const command = parent.command(spec.usage).description(spec.description)
  if (spec.summary) command.summary(spec.summary)
  if (spec.aliases) command.aliases([...spec.aliases])
  if (spec.shownUsage) command.usage(spec.shownUsage)
  if (spec.help) command.addHelpText('after', spec.help)
  for (const argument of command.registeredArguments) {
    const { description, choices } = spec.arguments?.[argument.name()] ?? {}
    if (description) argument.description = description
    if (choices) argument.choices(choices)
  }
  for (const [name, option] of Object.entries(spec.options ?? {}))
    command.addOption(commanderOption(name, option))
  if (command.name() === 'list') {
    command.addOption(commanderOption('wide', WIDE)).addOption(commanderOption('quiet', QUIET))
  }
  if (takesServer(command)) command.addOption(commanderOption('server', SERVER_OPTION))
  if (spec.loss) command.addOption(commanderOption('yes', YES))
  if (spec.json !== null) command.option('--json', spec.json)
  if (spec.access !== 'none') addConnectionOptions(command, spec.access)
  if (spec.hints) command.configureOutput({ outputError: withHints(spec.hints) })
  command.action(async (...given: unknown[]) => {
    const all = given.slice(0, command.registeredArguments.length)
    const [server, args] = takesServer(command) ? [all[0], all.slice(1)] : [undefined, all]
    const options = optionsOf(command, spec)
    if (server && options.server !== undefined)
      throw new UsageError('Name the server once: as an argument or with --server.')
    // A command without SERVER may declare the option itself; `server()` of its invocation reads it.
    const named = {
      server: server || options.server,
      isArgument: Boolean(server) && all.length > 1,
      how: command.options.some(({ long }) => long === '--server')
        ? 'with --server SERVER'
        : 'as SERVER:PATH',
    }
    // What is lost must be named, or the instance that it is lost from.
    const isNamed = named.server !== undefined || args.some((arg) => typeof arg === 'string')
    const mayBeElsewhere = spec.loss === undefined || isNamed
    const invocation = invocationOf(session, spec.access, args, options, { ...named, mayBeElsewhere })
    if (spec.loss && !options.yes) {
      const { confirmLoss } = await import('./confirm.ts')
      await confirmLoss(
        async () => (await spec.loss?.(invocation)) ?? null,
        invocation.connect,
        session.context,
      )
    }
    const code = await spec.run(invocation).catch((error: unknown) => {
      throw inWordsOf(command, error)
    })
    if (typeof code === 'number') session.exitCode = code
  })
}

/** The options of lists. */
const WIDE = flag('whole ids and times and all columns, also on a narrow terminal')
const QUIET = flag('only the first column: the ids, one a line', { short: 'q' })

/** The option of commands that ask a person before. */
export const YES = flag('do not ask before', { short: 'y' })

/** The other way to name the server of a command whose usage begins with `[SERVER]`. */
const SERVER_OPTION = textOption('SERVER', 'the same as SERVER')

/** Returns the placeholder of an option's value; undefined for a switch. */
export const placeholderOf = ({ flags }: Option): string | undefined => /[<[]([^>\]]+)[>\]]/.exec(flags)?.[1]

/** Returns the values of the options. The library stores `--no-NAME` as NAME: false. */
function optionsOf(command: Command, { options = {} }: CommandSpec): Record<string, unknown> {
  const values: Record<string, unknown> = command.opts()
  for (const name of Object.keys(options)) {
    const negated = /^no([A-Z])(.*)$/.exec(name)
    if (negated) values[name] = values[`${negated[1]?.toLowerCase()}${negated[2]}`] === false
  }
  return values
}

/** Group of the connection options, the last one of a help text. */
export const CONNECTION_GROUP = 'Connection:'

/** Adds the connection options of a command. */
function addConnectionOptions(command: Command, access: 'api' | 'control'): void {
  const options = {
    baseUrl: textOption('URL', 'the instance to talk to [BERTH_BASE_URL]'),
    ...(access === 'api'
      ? { apiKey: textOption('KEY', 'the key to use [BERTH_API_KEY]') }
      : { adminToken: textOption('TOKEN', 'the admin token [BERTH_ADMIN_TOKEN]') }),
    data: textOption('DIR', 'else: the instance of this data directory [BERTH_DATA]'),
  }
  for (const [name, option] of Object.entries(options))
    command.addOption(commanderOption(name, { ...option, group: CONNECTION_GROUP }))
}

const withHints =
  (hints: Readonly<Record<string, string>>) =>
  (text: string, write: (text: string) => void): void => {
    const hint = Object.entries(hints).find(([part]) => text.includes(part))?.[1] ?? ''
    write(text.replace(/^error: /, 'berth: ') + hint)
  }

/** Returns what to write if the first of several arguments does not name the server, as a sentence after another. */
const notTheServer = (given: string): string =>
  ` If ${JSON.stringify(given)} is not the server, name that with --server SERVER.`

function invocationOf(
  session: CliSession,
  access: CommandAccess,
  args: readonly unknown[],
  options: Record<string, unknown> & CommonOptions,
  named: { server: unknown; isArgument: boolean; how: string; mayBeElsewhere: boolean },
): Invocation<readonly unknown[], Record<string, unknown>> {
  const { stdout: out } = session.context
  let client: Promise<Client> | undefined
  const api = access === 'control' ? 'control' : 'api'
  // Found once: a command that connects again means the same instance, also while that is down.
  let where: Promise<InstanceOptions> | undefined
  const connectTo = async (to: ApiKind): Promise<Client> => {
    where ??= named.mayBeElsewhere ? orOnlyInstance(session.context, options, api) : Promise.resolve(options)
    return connect(session, await where, to)
  }
  const reconnect = (): Promise<Client> => connectTo(api)
  const connectOnce = (): Promise<Client> => {
    client ??= reconnect()
    return client
  }
  const names = new IdResolver(session, { access, connect: connectOnce, connectTo })
  const server = (orElse = ''): Promise<string> =>
    typeof named.server === 'string'
      ? names.resolve('SERVER', named.server, named.isArgument ? notTheServer(named.server) : '')
      : names.chosenServer(`${named.how}${orElse}`)
  return {
    session,
    args,
    options,
    connect: connectOnce,
    reconnect,
    server,
    async place(given) {
      if (given !== undefined) return names.resolvePlace(given)
      if (typeof named.server !== 'string') return { serverId: await server(), directory: undefined }
      return names.resolvePlace(named.server, named.isArgument ? notTheServer(named.server) : '')
    },
    idOf: (placeholder, given) => names.resolve(placeholder, given),
    async print(result, show) {
      await printResult(out, options.json, result, () =>
        show(result, { out, args, layout: options as TableLayout, connect: connectOnce }),
      )
      return 0
    },
  }
}
