import { UsageError } from '../errors.ts'
import { CommandError } from './errors.ts'
import { readNamedFile } from './local-file.ts'
import type { ProcessContext } from './process-context.ts'

/** Environment variables by name. */
export type VariableValues = Record<string, string>

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Matches the first line of a variable. A quoted value may continue on the next lines. */
const ASSIGNMENT = /^\s*(?:export\s+)?([^\s=]+)\s*=\s*(.*)$/

/** Reports whether a process can have a variable of this name (POSIX.1-2024, XBD section 8.1). */
export const isVariableName = (name: string): boolean => NAME.test(name)

/**
 * Splits NAME=VALUE pairs.
 *
 * @param where option or command, for the message
 * @throws UsageError with the position of a wrong pair, which may be a secret
 */
export function parsePairs(pairs: readonly string[], where: string): VariableValues {
  return Object.fromEntries(
    pairs.map((pair, index) => {
      const at = pair.indexOf('=')
      if (at > 0 && isVariableName(pair.slice(0, at))) return [pair.slice(0, at), pair.slice(at + 1)]
      throw new UsageError(
        `${where}: number ${index + 1} is not NAME=VALUE, with a name of letters, digits and "_".`,
      )
    }),
  )
}

/**
 * Reads the variables of a `.env` file by the rules of Node.js; `-` reads standard input.
 *
 * @throws CommandError if it cannot be read, or with the number of a line that is not a variable
 */
export async function readVariables(file: string, context: ProcessContext): Promise<VariableValues> {
  const bytes = await readNamedFile(file, context)
  const text = new TextDecoder().decode(bytes).replaceAll('\r\n', '\n')
  checkLines(text, file === '-' ? 'Standard input' : file)
  const { parseEnv } = await import('node:util')
  return parseEnv(text) as VariableValues
}

/** Refuses lines that the parser would skip: no variable must get lost. */
function checkLines(text: string, source: string): void {
  let quote = ''
  for (const [index, line] of text.split('\n').entries()) {
    if (quote !== '') {
      if (line.includes(quote)) quote = ''
      continue
    }
    if (/^\s*(?:#|$)/.test(line)) continue
    const [, name = '', value = ''] = ASSIGNMENT.exec(line) ?? []
    if (!isVariableName(name)) {
      throw new CommandError(
        `${source}: line ${index + 1} is not NAME=VALUE, with a name of letters, digits and "_".`,
      )
    }
    const opening = /^["'`]/.exec(value)?.[0] ?? ''
    if (opening !== '' && !value.includes(opening, 1)) quote = opening
  }
  if (quote !== '') throw new CommandError(`${source}: a value in quotes is not closed with ${quote}.`)
}
