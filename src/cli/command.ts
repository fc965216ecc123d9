import type { Command } from 'commander'
import {
  type ArgumentsOf,
  type CallId,
  isControlCall,
  type PartsOf,
  type ResponseOf,
} from '../route-client/client.ts'
import type { Client } from './client.ts'
import type { InstanceOptions } from './find-instance.ts'
import type { NameSource, NameSources, ServerPlace } from './names.ts'
import { flag, type OptionSpecs, type OptionsOf } from './options.ts'
import { facts } from './output.ts'
import type { OutputStream } from './process-context.ts'
import type { CliSession } from './session.ts'
import { showWhile } from './status-line.ts'
import { type Column, type TableLayout, table } from './table.ts'

/** The access of a command: the API with a key, the control API with the admin token, or none. */
export type CommandAccess = 'api' | 'control' | 'none'

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
  readonly access: CommandAccess
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

/** A command, or a noun with its commands. */
export type Member = Noun | RunnableCommand

/** A group of the help text with its members, after `serve` and `run`. */
export interface CommandGroup {
  readonly heading: string
  readonly members: readonly Member[]
}

/** The commands but `serve` and `run`, which start without the others. */
export interface Catalog {
  /** In the order of the help text. */
  readonly groups: readonly CommandGroup[]
  /** What the placeholders of usages mean. */
  readonly names: NameSources
  /** Returns the names of the guide's pages, which `berth help` shows too. */
  pages(): readonly string[]
  /** Adds the command that completion scripts call. */
  registerCompletion(program: Command, session: CliSession): void
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
export interface CommonOptions extends InstanceOptions {
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
type ArgsOf<Usage> = Usage extends `${infer Word} ${infer Rest}`
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
      const { session, args, options, connect, print } = invocation
      const parts = await request?.(args, options, invocation)
      const client = await connect()
      const result = await showWhile(session.context.stderr, spec.description, () =>
        client.call(id, ...([parts] as ArgumentsOf<Id>)),
      )
      const isQuiet = 'quiet' in options && options.quiet === true
      await print(result, madeId !== undefined && isQuiet ? () => `${madeId(result)}\n` : show)
    },
  } as ActionSpec<Usage, Specs>)

/** The option of commands that make something. */
const ONLY_ID = flag('print only the id', { short: 'q' })

/** A command with its own action. */
interface ActionSpec<Usage extends string, Specs extends OptionSpecs> extends CommandSpec {
  readonly usage: Usage
  readonly options?: Specs
  readonly access: CommandAccess
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
