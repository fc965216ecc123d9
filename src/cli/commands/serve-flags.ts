import mri from 'mri'
import { CONFIG_OPTIONS } from '../../config/config.ts'

/** Name of the hidden command that runs an instance in the background. */
export const BACKGROUND = '__background'

/** A flag of a command that is no configuration option. */
export interface OwnFlag {
  readonly name: string
  /** Name of its value in help texts. A switch has none. */
  readonly value?: string
  readonly description: string
}

/** Flags of `serve` that neither a variable nor the config file sets. */
export const SERVE_FLAGS: readonly OwnFlag[] = [
  { name: 'detach', description: 'start it in the background and return when it is ready' },
]

/**
 * Parses the flags of a plain `berth serve …` (or `berth …`) without the large command-line library, whose loading
 * would take a third of the start-up time. Returns null for any other command line and for wrong or unusual flags.
 * The library then parses the same line and explains.
 */
export function parseServeFlags(args: readonly string[]): Record<string, unknown> | null {
  if (args[0] === 'serve') return parseFlags(args.slice(1), SERVE_FLAGS)
  return args[0]?.startsWith('-') === false ? null : parseFlags(args, SERVE_FLAGS)
}

/** Parses options of `serve` together with a command's own flags. */
export function parseFlags(args: readonly string[], own: readonly OwnFlag[]): Record<string, unknown> | null {
  const options = [...CONFIG_OPTIONS, ...own]
  const withValue = ['config', ...options.filter(({ value }) => value).map(({ name }) => name)]
  const switches = options.filter(({ value }) => !value).map(({ name }) => name)
  // mri would accept any value of a switch as true.
  if (switches.some((name) => args.some((arg) => arg.startsWith(`--${name}=`)))) return null
  // Only options that a variable or the file can turn on have a --no form.
  if (own.some(({ name }) => args.includes(`--no-${name}`))) return null
  const repeatable = CONFIG_OPTIONS.filter((option) => option.repeatable).map(({ name }) => name)
  const parsed: mri.Argv | null = mri([...args], {
    string: withValue,
    boolean: switches,
    // mri treats only names with an entry here as known.
    alias: Object.fromEntries([...withValue, ...switches].map((name) => [name, []])),
    // The returned value becomes mri's result.
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
    // The last of several values counts, except for options that form a list.
    given[name] = repeatable.includes(name) ? all : all.at(-1)
  }
  return given
}
