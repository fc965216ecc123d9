import type { Command } from 'commander'
import { NOUNS } from './nouns/index.ts'
import { defaultOf } from './runner.ts'

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
