import type { Command, Option } from 'commander'
import {
  type ArgumentsOf,
  type CallId,
  isControlCall,
  type PartsOf,
  type ResponseOf,
} from '../client/client.ts'
import { UsageError } from '../errors.ts'
import type { Client } from './client.ts'
import type { ConnectionOptions } from './find-instance.ts'
import { NameResolver } from './name-resolver.ts'
import type { NameSource, ServerPlace } from './names.ts'
import { commanderOption, flag, inWordsOf, type OptionSpecs, type OptionsOf, text } from './options.ts'
import { facts, printResult } from './output.ts'
import type { OutputStream } from './process-context.ts'
import { type CliSession, connect } from './session.ts'
import { type Column, type TableLayout, table } from './table.ts'

/** The access of a command: the API with a key, the control API with the admin token, or none. */
export type Access = 'api' | 'control' | 'none'

/** A command of the command line, as data. */
export interface CommandSpec {
  /** Name and arguments, as in `get <SERVER>`. */
  readonly usage: string
  /** The operations that it is the way to call from a terminal, for the reference. `call` sets its own. */
  readonly operations?: readonly CallId[]
  readonly aliases?: readonly string[]
  /** Description in the list of commands; by default `description`. */
  readonly summary?: string
  readonly description: string
  readonly options?: OptionSpecs
  /** Descriptions of arguments, and their choices if they have any, by name. */
  readonly arguments?: Readonly<
    Record<string, { readonly description?: string; readonly choices?: readonly string[] }>
  >
  /** Part of its help after the options. */
  readonly help?: string
  /** Replaces `usage` in its help. */
  readonly shownUsage?: string
  /** Additions to the library's usage errors, by a part of the message. */
  readonly hints?: Readonly<Record<string, string>>
}

/** A command that can be run, with the types of its arguments and options erased. */
export interface RunnableCommand extends CommandSpec {
  readonly access: Access
  /** Description of `--json`; null for no such option. */
  readonly json: string | null
  run(invocation: Invocation<readonly unknown[], Record<string, unknown>>): Promise<unknown>
  /** Returns what it removes for good, as a sentence; null for nothing. A person is asked before, unless `--yes` is given. */
  loss?(invocation: Invocation<readonly unknown[], Record<string, unknown>>): Promise<string | null>
}

/** A noun with its commands: plain `berth NOUN` is its `list`. */
export interface Noun {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly summary: string
  readonly description: string
  readonly help?: string
  /** What its placeholders mean. Their lists need the access of its first command. */
  readonly names?: readonly NameSource[]
  readonly commands: readonly RunnableCommand[]
}

/** One invocation of a command. */
export interface Invocation<Args, Options> {
  readonly session: CliSession
  readonly args: Args
  readonly options: Options & CommonOptions
  /**
   * Connects to the instance. Later calls return the same client.
   *
   * @throws CommandError, UsageError if there is none
   */
  connect(): Promise<Client>
  /** Connects to the instance again, which may have a new address after a restart. */
  reconnect(): Promise<Client>
  /**
   * Returns the id of the server that the argument `[SERVER]` or `--server` names, else of the one of `berth use`, else
   * of the only one.
   *
   * @param orElse another way to say what is meant, for the message
   * @throws CommandError if there is none, or more than one
   */
  server(orElse?: string): Promise<string>
  /**
   * Returns the directory of a server that a person means: as `server`, and by the name of a project its directory.
   *
   * @param named in place of the argument `[SERVER]` and of `--server`
   * @throws CommandError if there is none, or more than one
   */
  place(named?: string): Promise<ServerPlace>
  /**
   * Returns the id of what a person means by the value of a placeholder, or the ids of several. Undefined stays so.
   *
   * @throws CommandError if nothing or more than one thing matches
   */
  idOf<Given extends string | string[] | undefined>(placeholder: string, given: Given): Promise<Given>
  /** Prints a result: as a line of JSON with `--json`, else as text for people. Resolves to 0, the exit code. */
  print<Result>(result: Result, show: Show<Result, Args>): Promise<number>
}

/** Prints a result: as a line of JSON with `--json`, else as text for people. Resolves to 0, the exit code. */
export type Print = <Result>(result: Result, show: Show<Result>) => Promise<number>

/** The options that the runner adds. */
export interface CommonOptions extends ConnectionOptions {
  json?: boolean
}

/** Returns a result as text for people, or as bytes. */
export type Show<Result, Args = unknown> = (
  result: Result,
  context: ShowContext<Args>,
) => string | Uint8Array | Promise<string | Uint8Array>

/** The context of a `Show` function. */
export interface ShowContext<Args> {
  readonly out: OutputStream
  readonly layout: TableLayout
  readonly args: Args
  connect(): Promise<Client>
}

/**
 * The arguments that a usage declares: `<A>` is a string, `[A]` may be undefined, `<A...>` is an array. `[SERVER]` is not
 * among them: `Invocation.server` finds the server that is meant.
 */
export type ArgsOf<Usage> = Usage extends `${infer Word} ${infer Rest}`
  ? [...ArgOf<Word>, ...ArgsOf<Rest>]
  : ArgOf<Usage>
type ArgOf<Word> = Word extends '[SERVER]'
  ? []
  : Word extends `<${string}...>` | `[${string}...]`
    ? [string[]]
    : Word extends `<${string}>`
      ? [string]
      : Word extends `[${string}]`
        ? [string | undefined]
        : []

/** A command of one API call: its request, and how to show the response. */
interface CallSpec<Id extends CallId, Usage extends string, Specs extends OptionSpecs> extends CommandSpec {
  readonly usage: Usage
  readonly options?: Specs
  /** Returns the parts of the request. Connects only to look something up. */
  readonly request?: (
    args: ArgsOf<Usage>,
    options: OptionsOf<Specs>,
    invocation: Pick<Invocation<unknown, unknown>, 'connect' | 'server' | 'idOf'>,
  ) => PartsOf<Id> | Promise<PartsOf<Id>>
  readonly show: Show<ResponseOf<Id>, ArgsOf<Usage>>
  /** Returns the id of what it made, which `-q` prints alone. */
  readonly id?: (result: ResponseOf<Id>) => string
  readonly loss?: ActionSpec<Usage, Specs>['loss']
}

/** Declares a command of one API call: it connects, calls, and prints the response. */
export const call = <
  Id extends CallId,
  const Usage extends string,
  const Specs extends OptionSpecs = Record<never, never>,
>(
  id: Id,
  { request, show, id: madeId, ...spec }: CallSpec<Id, Usage, Specs>,
): RunnableCommand =>
  action({
    ...spec,
    ...(madeId === undefined ? {} : { options: { ...spec.options, quiet: ONLY_ID } }),
    operations: [id],
    access: isControlCall(id) ? 'control' : 'api',
    async run(invocation: Invocation<ArgsOf<Usage>, OptionsOf<Specs>>) {
      const { args, options, connect, print } = invocation
      const parts = await request?.(args, options, invocation)
      const client = await connect()
      const result = await client.call(id, ...([parts] as ArgumentsOf<Id>))
      const isQuiet = 'quiet' in options && options.quiet === true
      await print(result, madeId !== undefined && isQuiet ? () => `${madeId(result)}\n` : show)
    },
  } as ActionSpec<Usage, Specs>)

/** A command with its own action. */
interface ActionSpec<Usage extends string, Specs extends OptionSpecs> extends CommandSpec {
  readonly usage: Usage
  readonly options?: Specs
  readonly access: Access
  readonly json?: string | null
  /** Resolves to the exit code; undefined means 0. */
  run(invocation: Invocation<ArgsOf<Usage>, OptionsOf<Specs>>): Promise<number | undefined>
  /** Returns what it removes for good, as a sentence; null for nothing. A person is asked before, unless `--yes` is given. */
  loss?(invocation: Invocation<ArgsOf<Usage>, OptionsOf<Specs>>): Promise<string | null>
}

/** Declares a command with its own action. */
export const action = <const Usage extends string, const Specs extends OptionSpecs = Record<never, never>>(
  spec: ActionSpec<Usage, Specs>,
): RunnableCommand => ({ json: RESPONSE_AS_JSON, ...spec }) as RunnableCommand

const RESPONSE_AS_JSON = "print the API's response as JSON, for programs"

/** Returns the description of a `--json` that prints one line for each item. */
export const jsonLines = (what: string): string => `one line of JSON for each ${what}, for programs`

/** Shows a list as a table, or a sentence if it is empty. */
export const rows =
  <Key extends string, Row, Args>(
    key: Key,
    columns: readonly Column<Row>[],
    empty: string | ((context: ShowContext<Args>) => string | Promise<string>) = '',
  ): Show<{ [Name in Key]: Row[] }, Args> =>
  (result, context) => {
    const { out, layout } = context
    if (result[key].length > 0 || empty === '') return table(out, columns, result[key], layout)
    if (layout.quiet) return ''
    return typeof empty === 'string' ? empty : empty(context)
  }

/** Shows one thing as facts. */
export const factSheet =
  <Result>(factsOf: (result: Result) => ReadonlyArray<readonly [string, string]>): Show<Result> =>
  (result, { out }) =>
    facts(out, factsOf(result))

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

/** Returns the default command of a noun; undefined if it has none without arguments. */
export const defaultOf = ({ commands }: Noun): string | undefined =>
  commands.find(({ usage }) => DEFAULT_USAGES.has(usage))?.usage.split(' ')[0]

const DEFAULT_USAGES: ReadonlySet<string> = new Set(['list', 'list [SERVER]', 'get'])

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
    const named = { server: server || options.server, isArgument: Boolean(server) && all.length > 1 }
    const invocation = invocationOf(session, spec.access, args, options, named)
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

/** The option of commands that make something. */
const ONLY_ID = flag('print only the id', { short: 'q' })

/** The option of commands that ask a person before. */
export const YES = flag('do not ask before', { short: 'y' })

/** The other way to name the server of a command whose usage begins with `[SERVER]`. */
const SERVER_OPTION = text('SERVER', 'the same as SERVER')

/** Reports whether the command's first argument is a server that may be left out. */
export const takesServer = ({ registeredArguments: [first] }: Command): boolean =>
  first?.name() === 'SERVER' && !first.required

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
    baseUrl: text('URL', 'the instance to talk to [BERTH_BASE_URL]'),
    ...(access === 'api'
      ? { apiKey: text('KEY', 'the key to use [BERTH_API_KEY]') }
      : { adminToken: text('TOKEN', 'the admin token [BERTH_ADMIN_TOKEN]') }),
    data: text('DIR', 'else: the instance of this data directory [BERTH_DATA]'),
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
  access: Access,
  args: readonly unknown[],
  options: Record<string, unknown> & CommonOptions,
  named: { server: unknown; isArgument: boolean },
): Invocation<readonly unknown[], Record<string, unknown>> {
  const { stdout: out } = session.context
  let client: Promise<Client> | undefined
  const reconnect = (): Promise<Client> => connect(session, options, access === 'control' ? 'control' : 'api')
  const connectOnce = (): Promise<Client> => {
    client ??= reconnect()
    return client
  }
  const names = new NameResolver(session, options, { access, connect: connectOnce })
  const server = (orElse = ''): Promise<string> =>
    typeof named.server === 'string'
      ? names.resolve('SERVER', named.server, named.isArgument ? notTheServer(named.server) : '')
      : names.chosenServer(`with --server SERVER${orElse}`)
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
