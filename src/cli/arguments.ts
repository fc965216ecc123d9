import type { Command } from 'commander'
import { NOUNS } from './nouns/index.ts'
import { defaultOf } from './runner.ts'

/** The command that a noun alone means, by the noun. */
const DEFAULTS: ReadonlyMap<string, string> = new Map(
  NOUNS.flatMap((noun) => {
    const command = defaultOf(noun)
    return command === undefined
      ? []
      : [noun.name, ...(noun.aliases ?? [])].map((name) => [name, command] as const)
  }),
)

/**
 * Returns what a line means that leaves something out, or says it in another way: plain `berth` is `berth serve`, plain `berth
 * servers` is `berth servers list`, `berth help faults add` is `berth faults add --help`.
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
 * The arguments up to the first word that names no command, where a command is to be named: `--help` behind it would
 * otherwise explain something else, and succeed.
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
