import type { Command, Option } from 'commander'
import { COMMAND_SYNONYMS } from './usage-errors.ts'

/*
 * People type a command line in more ways than the library reads: options of the instance before the command, a noun
 * without its command, no server where there is one. `commandLine` turns what was typed into what the library reads, in
 * one pass from left to right. The library alone checks it and reads its values.
 */

/** Name of the hidden command that runs an instance in the background. */
export const BACKGROUND = '__background'

/** Name of the hidden command that the completion scripts call. */
export const COMPLETE = '__complete'

/** Options that select an instance, each with a value. People put them before the command, as with other tools. */
const INSTANCE_OPTIONS: ReadonlySet<string> = new Set(['--base-url', '--api-key', '--admin-token', '--data'])

/**
 * Returns a command line as the library reads it: `berth` becomes `berth serve`, `berth servers` becomes `berth servers
 * list`, `berth --json servers` becomes `berth servers list --json`, `berth help faults add` becomes `berth faults add
 * --help`, `berth exec ls -la` becomes `berth exec '' -- ls -la`.
 *
 * @param pages returns the pages of the guide, which `berth help` shows too
 */
export function commandLine(
  program: Command,
  typed: readonly string[],
  pages: () => readonly string[],
): readonly string[] {
  const [first, topic = '-', ...more] = typed
  if (first === 'help' && !topic.startsWith('-')) {
    const isPage = subcommand(program, topic) === undefined && pages().includes(topic)
    return commandLine(program, isPage ? ['guide', topic, ...more] : [topic, ...more, '--help'], pages)
  }
  const found = findCommand(program, typed)
  // A `--help` behind a word that names no command would explain another command and succeed.
  if (found.unknown !== undefined) return [...found.path, found.unknown]
  const { command, path, words } = found.words.some(isHelpOption) ? found : orDefault(found)
  const separated = path[0] === 'exec' ? separateCommand(command, words) : words
  return [...path, ...(isServerLeftOut(command, separated) ? [''] : []), ...separated]
}

/**
 * Returns the word that a command line names its command or noun by, before the program is made; an empty text for none,
 * such as with `--help`.
 */
export function firstWord(typed: readonly string[]): string {
  const word = typed[endOfCommonOptions(typed)]
  if (word === 'help') return typed[typed.indexOf(word) + 1] ?? ''
  if (word === '-v' || word === '--version') return 'version'
  if (word !== undefined && isHelpOption(word)) return ''
  return word === undefined || word.startsWith('-') ? 'serve' : word
}

/** The command that the first words of a command line name. */
interface FoundCommand {
  readonly command: Command
  /** The words that name it. */
  readonly path: readonly string[]
  /** The words behind it, first the common options that were before or between the others. */
  readonly words: readonly string[]
  /** A word that should name a command and does not. */
  readonly unknown?: string
}

/** Finds the command that words name, as far as they go: a noun if no word and no option follows it. */
export function findCommand(program: Command, typed: readonly string[]): FoundCommand {
  const path: string[] = []
  const moved: string[] = []
  let [command, rest] = [program, typed]
  while (command.commands.length > 0) {
    const end = endOfCommonOptions(rest)
    moved.push(...rest.slice(0, end))
    rest = rest.slice(end)
    const [word] = rest
    if (word === undefined || isHelpOption(word)) break
    const isVersion = command === program && (word === '-v' || word === '--version')
    const name = isVersion ? 'version' : word
    const named = subcommand(command, name)
    const next = named ?? (word.startsWith('-') ? defaultOf(command) : listOfShortNoun(command, path, rest))
    if (next === undefined) return { command, path, words: moved, unknown: word }
    path.push(named === undefined ? next.name() : name)
    command = next
    if (named !== undefined) rest = rest.slice(1)
  }
  return { command, path, words: [...moved, ...rest] }
}

/** Returns the default command of a noun, or of `berth` itself; any other command unchanged. */
export function orDefault(found: FoundCommand): FoundCommand {
  const command = defaultOf(found.command)
  return command === undefined ? found : { ...found, command, path: [...found.path, command.name()] }
}

const isHelpOption = (word: string): boolean => word === '-h' || word === '--help'

const subcommand = ({ commands }: Command, word: string): Command | undefined =>
  commands.find((one) => one.name() === word || one.aliases().includes(word))

/** Returns the command that a noun without one means: its list, else the one thing that there is. */
export const defaultOf = ({ commands, parent }: Command): Command | undefined =>
  commands.find((one) =>
    parent === null
      ? one.name() === 'serve'
      : commands.length === 1 ||
        (['list', 'get'].includes(one.name()) && one.registeredArguments.every(isServer)),
  )

/**
 * Returns the list of a noun that was named by a short name, if the next word is no command of it and its list takes a
 * server: `berth ps web` is `berth ps list web`, since it reads as a command of its own.
 */
function listOfShortNoun(
  noun: Command,
  path: readonly string[],
  [word = '', next = '-']: readonly string[],
): Command | undefined {
  // With an operand behind it, such as in `berth ps kill 1`, it is a command of another tool and no server.
  if (!next.startsWith('-') && Object.hasOwn(COMMAND_SYNONYMS, word)) return undefined
  const list = subcommand(noun, 'list')
  return list && takesServer(list) && noun.aliases().includes(path.at(-1) ?? '') ? list : undefined
}

/** Returns how many words the common options take that a command line begins with. */
function endOfCommonOptions(words: readonly string[]): number {
  let end = 0
  for (;;) {
    const option = words[end] ?? ''
    if (INSTANCE_OPTIONS.has(splitOption(option).name)) end += option.includes('=') ? 1 : 2
    else if (option === '--json') end += 1
    else return Math.min(end, words.length)
  }
}

/** The words behind a command, by what each is. */
interface ParsedWords {
  readonly operands: readonly string[]
  /** Where the operands are. */
  readonly at: readonly number[]
  readonly options: readonly Option[]
  /** The option whose value is next. */
  readonly pending?: Option | undefined
  /** Where the first option is that the command does not have. */
  readonly foreign?: number | undefined
  /** Where `--` is. What is behind it is neither operand nor option here. */
  readonly end?: number | undefined
}

/** Tells apart the operands and the options of a command. */
export function parseWords(command: Command, words: readonly string[]): ParsedWords {
  const [operands, at, options]: [string[], number[], Option[]] = [[], [], []]
  let [pending, foreign]: [Option | undefined, number | undefined] = [undefined, undefined]
  for (const [index, word] of words.entries()) {
    if (pending) pending = undefined
    else if (word === '--') return { operands, at, options, foreign, end: index }
    else if (word.startsWith('-') && word !== '-') {
      const { name, value } = splitOption(word)
      const option = findOption(command, name)
      if (option) options.push(option)
      else if (!isHelpOption(word)) foreign ??= index
      if (option?.required && value === undefined) pending = option
    } else {
      operands.push(word)
      at.push(index)
    }
  }
  return { operands, at, options, pending, foreign }
}

/** Returns the option that a word names. */
export const findOption = ({ options }: Command, name: string): Option | undefined =>
  options.find(({ long, short }) => long === name || short === name)

/** Splits `--name=value` into name and value. `--name` has no value. */
export function splitOption(word: string): { readonly name: string; readonly value?: string } {
  const at = word.indexOf('=')
  return at < 0 ? { name: word } : { name: word.slice(0, at), value: word.slice(at + 1) }
}

/** Reports whether the command's first argument is a server that may be left out. */
export const takesServer = ({ registeredArguments: [first] }: Command): boolean =>
  first !== undefined && isServer(first)

const isServer = (argument: Command['registeredArguments'][number]): boolean =>
  argument.name() === 'SERVER' && !argument.required

/**
 * Puts `--` before the command of an `exec` whose own options are not behind one, as in `berth exec ls -la` and `berth
 * exec SERVER ls -la`: an option that `exec` does not have is the command's.
 */
function separateCommand(exec: Command, words: readonly string[]): readonly string[] {
  const { foreign } = parseWords(exec, words)
  if (foreign === undefined) return words
  const { at, options } = parseWords(exec, words.slice(0, foreign))
  const [first, second] = at
  const begin = options.some(isServerOption) ? first : (second ?? first)
  return begin === undefined ? words : [...words.slice(0, begin), '--', ...words.slice(begin)]
}

/**
 * Reports whether a command whose usage begins with `[SERVER]` is given none. The library then gets an empty operand in its
 * place. There are only as many operands as the others need, or `--server` is given, or the first operand is behind `--`.
 */
function isServerLeftOut(command: Command, words: readonly string[]): boolean {
  if (!takesServer(command)) return false
  const { operands, options, end = words.length } = parseWords(command, words)
  const behind = words.slice(end + 1).length
  const [first] = operands
  const [, ...others] = command.registeredArguments
  if (options.some(isServerOption)) return true
  if (first === undefined) return behind > 0
  const needed = others.filter(({ required }) => required).length
  if (!first.startsWith('srv_') && operands.length + behind <= needed) return true
  return operands.length === 1 && others[0]?.argChoices?.includes(first) === true
}

const isServerOption = ({ long }: Option): boolean => long === '--server'
