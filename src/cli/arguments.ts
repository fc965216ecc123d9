import type { Command, Option } from 'commander'
import { defaultOf } from './command.ts'
import { NOUNS } from './nouns/index.ts'
import { takesServer } from './runner.ts'
import { COMMAND_SYNONYMS } from './usage-errors.ts'

/** The default command of each noun, by the noun's name and aliases. */
const DEFAULTS: ReadonlyMap<string, string> = new Map(
  NOUNS.flatMap((noun) => {
    const command = defaultOf(noun)
    return command === undefined
      ? []
      : [noun.name, ...(noun.aliases ?? [])].map((name) => [name, command] as const)
  }),
)

/**
 * Completes and normalizes a command line: `berth` becomes `berth serve`, `berth servers` becomes `berth servers
 * list`, `berth help faults add` becomes `berth faults add --help`.
 */
export function expandDefaults(args: readonly string[]): readonly string[] {
  const [first, second] = args
  if (first === 'help' && second !== undefined && !isOptionOrMissing(second))
    return [...args.slice(1), '--help']
  if (first === '-v' || first === '--version') return ['version', ...args.slice(1)]
  const command = first === undefined ? undefined : DEFAULTS.get(first)
  if (first !== undefined && command !== undefined && isOptionOrMissing(second))
    return [first, command, ...args.slice(1)]
  return isOptionOrMissing(first) ? ['serve', ...args] : args
}

/** Options that select an instance, each with a value. People put them before the command, as with other tools. */
const INSTANCE_OPTIONS: ReadonlySet<string> = new Set(['--base-url', '--api-key', '--admin-token', '--data'])

/**
 * Moves options of nearly every command behind the command that follows them, as in `berth --base-url URL servers`,
 * `berth --json servers` and `berth servers --data DIR list`: those that select an instance, and `--json`.
 */
export function moveCommonOptions(args: readonly string[]): readonly string[] {
  const [before, words] = splitAtCommonOptions(args)
  const [noun = ''] = words
  if (isOptionOrMissing(noun)) return args
  const isNoun = NOUNS.some(({ name, aliases = [] }) => [name, ...aliases].includes(noun))
  if (!isNoun) return [noun, ...before, ...words.slice(1)]
  const [between, [command, ...rest]] = splitAtCommonOptions(words.slice(1))
  if (command === undefined || isOptionOrMissing(command)) return [noun, ...before, ...words.slice(1)]
  return [noun, command, ...before, ...between, ...rest]
}

/** Splits words behind the common options that they begin with. */
function splitAtCommonOptions(
  words: readonly string[],
): [options: readonly string[], rest: readonly string[]] {
  let end = 0
  for (;;) {
    const option = words[end] ?? ''
    if (INSTANCE_OPTIONS.has(splitOption(option)[0])) end += option.includes('=') ? 1 : 2
    else if (option === '--json') end += 1
    else return [words.slice(0, end), words.slice(end)]
  }
}

/**
 * Makes what follows the short name of a noun the server of its list, unless it is a command: `berth ps web` is `berth
 * ps list web`, since it reads as a command of its own.
 */
export function expandShortNoun(program: Command, args: readonly string[]): readonly string[] {
  const [first = '', second, third] = args
  if (second === undefined || second.startsWith('-')) return args
  // With an operand after it, such as in `berth ps kill 1`, it is a command of another tool and no server.
  if (third !== undefined && !third.startsWith('-') && Object.hasOwn(COMMAND_SYNONYMS, second)) return args
  const noun = program.commands.find((one) => one.aliases().includes(first))
  const isCommand = noun?.commands.some((one) => one.name() === second || one.aliases().includes(second))
  const list = noun?.commands.find((one) => one.name() === 'list')
  return list && takesServer(list) && !isCommand ? [first, 'list', ...args.slice(1)] : args
}

const isOptionOrMissing = (arg: string | undefined): boolean =>
  arg === undefined || (arg.startsWith('-') && arg !== '-h' && arg !== '--help')

/**
 * Truncates the arguments after the first word that should name a command and does not. A `--help` after it would
 * otherwise explain another command and succeed.
 */
export function truncateAtUnknownCommand(program: Command, args: readonly string[]): readonly string[] {
  let command = program
  for (const [at, word] of args.entries()) {
    if (command.commands.length === 0 || word.startsWith('-')) return args
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
    if (next === undefined) return word === 'help' ? args : args.slice(0, at + 1)
    command = next
  }
  return args
}

/** The words of a command line, by what each is. */
export interface ParsedWords {
  /** The command that the words name so far. */
  command: Command
  /** Number of the words up to the command's own. */
  commandEnd: number
  operands: string[]
  options: Option[]
  /** The option whose value is next. */
  option?: Option
  /** Whether `--` came before. */
  isAfterDoubleDash: boolean
}

/** Tells apart commands, operands and options, up to `--`. */
export function parseWords(program: Command, words: readonly string[]): ParsedWords {
  const parsed: ParsedWords = {
    command: program,
    commandEnd: 0,
    operands: [],
    options: [],
    isAfterDoubleDash: false,
  }
  for (const [at, word] of words.entries()) {
    if (parsed.option) delete parsed.option
    else if (word === '--') return { ...parsed, isAfterDoubleDash: true }
    else if (word.startsWith('-') && word !== '-') {
      const [name = '', value] = splitOption(word)
      const option = findOption(parsed.command, name)
      if (option) parsed.options.push(option)
      if (option?.required && value === undefined) parsed.option = option
    } else {
      const next = parsed.command.commands.find(
        (command) => command.name() === word || command.aliases().includes(word),
      )
      if (next) Object.assign(parsed, { command: next, commandEnd: at + 1, operands: [] })
      else parsed.operands.push(word)
    }
  }
  return parsed
}

/** Returns the option that a word names. */
export const findOption = (command: Command, name: string): Option | undefined =>
  command.options.find((option) => option.long === name || option.short === name)

/** Splits `--name=value` into name and value. `--name` has no value. */
export function splitOption(word: string): [name: string, value?: string] {
  const at = word.indexOf('=')
  return at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)]
}

/**
 * Puts `--` before the command of an `exec` whose own options are not behind one, as in `berth exec ls -la` and `berth
 * exec SERVER ls -la`: an option that `exec` does not know is the command's.
 */
export function separateCommand(program: Command, words: readonly string[]): readonly string[] {
  if (words[0] !== 'exec') return words
  const { command } = parseWords(program, words.slice(0, 1))
  const isNamed = words.some((word) => word === '--server' || word === '-s' || word.startsWith('--server='))
  /** Where the operands are that may be the server and the beginning of the command. */
  const operands: number[] = []
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ''
    if (word === '--') return words
    if (!word.startsWith('-') || word === '-') {
      operands.push(at)
      continue
    }
    const [name, value] = splitOption(word)
    const option = findOption(command, name)
    if (option?.required && value === undefined) at++
    if (option || ['-h', '--help'].includes(name)) continue
    const [first, second] = operands
    const begin = isNamed ? first : (second ?? first)
    return begin === undefined ? words : [...words.slice(0, begin), '--', ...words.slice(begin)]
  }
  return words
}

/**
 * Adds an empty operand in place of the server, if the command's usage begins with `[SERVER]` and none is given: there
 * are only as many operands as the others need, or `--server` is given, or the first operand is behind `--`.
 */
export function markLeftOutServer(program: Command, words: readonly string[]): readonly string[] {
  const parsed = parseWords(program, words)
  const { command, commandEnd, operands, options } = parsed
  if (!takesServer(command)) return words
  const [first] = operands
  const [, ...others] = command.registeredArguments
  const behind = parsed.isAfterDoubleDash ? words.slice(words.indexOf('--') + 1) : []
  const needed = others.filter(({ required }) => required).length
  const isLeftOut =
    options.some(({ long }) => long === '--server') ||
    (first === undefined && behind.length > 0) ||
    (first !== undefined && !first.startsWith('srv_') && operands.length + behind.length <= needed) ||
    (operands.length === 1 && others[0]?.argChoices?.includes(first ?? ''))
  return isLeftOut ? [...words.slice(0, commandEnd), '', ...words.slice(commandEnd)] : words
}
