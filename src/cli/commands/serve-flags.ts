import mri from 'mri'
import { CONFIG_OPTIONS } from '../../config/config.ts'

/** Name of the hidden command that is an instance in the background. */
export const BACKGROUND = '__background'

/** A flag of a command that is no option of the service. */
export interface OwnFlag {
  readonly name: string
  /** The name of its value in help texts; a switch has none. */
  readonly value?: string
  readonly description: string
}

/** The flags of `serve` that no variable and no config file sets. */
export const SERVE_FLAGS: readonly OwnFlag[] = [
  { name: 'detach', description: 'start it in the background and return when it is ready' },
]

/**
 * Reads the flags of a plain `berth serve …` (or `berth …`) without the large command-line library,
 * whose loading would be a third of the start-up. Null for everything else, wrong or unusual flags
 * included: that library then parses the same line anew, and explains.
 */
export const parseServeFlags = (args: readonly string[]): Record<string, unknown> | null =>
  parseFlags(args[0] === 'serve' ? args.slice(1) : args, SERVE_FLAGS)

/** Reads options of `serve` and flags of the command's own in the same way. */
export function parseFlags(args: readonly string[], own: readonly OwnFlag[]): Record<string, unknown> | null {
  const options = [...CONFIG_OPTIONS, ...own]
  const withValue = ['config', ...options.filter(({ value }) => value).map(({ name }) => name)]
  const switches = options.filter(({ value }) => !value).map(({ name }) => name)
  // It would take any value of a switch for a yes.
  if (switches.some((name) => args.some((arg) => arg.startsWith(`--${name}=`)))) return null
  // Only what a variable or the file can turn on needs to be turned off.
  if (own.some(({ name }) => args.includes(`--no-${name}`))) return null
  const repeatable = CONFIG_OPTIONS.filter((option) => option.repeatable).map(({ name }) => name)
  const parsed: mri.Argv | null = mri([...args], {
    string: withValue,
    boolean: switches,
    // Only a name that has an entry here counts as known.
    alias: Object.fromEntries([...withValue, ...switches].map((name) => [name, []])),
    // What this returns is the result of the whole.
    unknown: () => null,
  })
  if (!parsed) return null
  const { _: positional, ...flags } = parsed
  if (positional.length > 0) return null
  const given: Record<string, unknown> = {}
  for (const [name, values] of Object.entries(flags)) {
    const all: unknown[] = Array.isArray(values) ? values : [values]
    const usual = withValue.includes(name)
      ? all.every((value) => typeof value === 'string' && value !== '')
      : switches.includes(name)
    if (!usual) return null
    // Of a flag given twice the last one counts, but of those that add to a list.
    given[name] = repeatable.includes(name) ? all : all.at(-1)
  }
  return given
}
