import mri from 'mri'
import { CONFIG_OPTIONS } from '../../config.ts'

/**
 * Reads the flags of a plain `berth serve …` (or `berth …`) without the large command-line library,
 * whose loading would be a third of the start-up. Null for everything else, wrong or unusual flags
 * included: that library then parses the same line anew, and explains.
 */
export function parseServeFlags(args: readonly string[]): Record<string, unknown> | null {
  const withValue = ['config', ...CONFIG_OPTIONS.filter(({ value }) => value).map(({ name }) => name)]
  const switches = CONFIG_OPTIONS.filter(({ value }) => !value).map(({ name }) => name)
  // It would take any value of a switch for a yes.
  if (switches.some((name) => args.some((arg) => arg.startsWith(`--${name}=`)))) return null
  const repeatable = CONFIG_OPTIONS.filter((option) => option.repeatable).map(({ name }) => name)
  const parsed: mri.Argv | null = mri(args[0] === 'serve' ? args.slice(1) : [...args], {
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
