import { type ParseArgsConfig, parseArgs } from 'node:util'
import { CONFIG_OPTIONS } from '../../config.ts'

/**
 * Reads the flags of a plain `berth serve …` (or `berth …`) without the command-line library, whose
 * loading would be a third of the start-up. Null for everything else, wrong or unusual flags included:
 * the library then parses the same line anew, and explains.
 */
export function parseServeFlags(args: readonly string[]): Record<string, unknown> | null {
  const options: NonNullable<ParseArgsConfig['options']> = { config: { type: 'string' } }
  for (const { name, value } of CONFIG_OPTIONS) options[name] = { type: value ? 'string' : 'boolean' }
  try {
    const rest = args[0] === 'serve' ? args.slice(1) : [...args]
    return parseArgs({ args: rest, options, strict: true, allowNegative: true, allowPositionals: false })
      .values
  } catch {
    return null
  }
}
