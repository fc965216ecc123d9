import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { UsageError } from '../errors.ts'
import { CommandError } from './errors.ts'
import type { ProcessContext } from './process-context.ts'

/** Environment variables by name. */
export type Variables = Record<string, string>

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** A line that begins a variable; a value in quotes may go on in the lines below. */
const ASSIGNMENT = /^\s*(?:export\s+)?([^\s=]+)\s*=\s*(.*)$/

/** Whether a process can have a variable of this name (POSIX.1-2024, XBD 8.1). */
export const isVariableName = (name: string): boolean => NAME.test(name)

/**
 * Splits NAME=VALUE pairs.
 *
 * @param where what they were given to, for the message
 * @throws UsageError that names a wrong one by its place: it may be a secret
 */
export function parsePairs(pairs: readonly string[], where: string): Variables {
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
 * Reads the variables of a `.env` file, by the rules that Node.js has for them; `-` is standard input.
 *
 * @throws CommandError where it cannot be read or a line is no variable, which the message names by its number
 */
export async function readVariables(file: string, { cwd, stdin }: ProcessContext): Promise<Variables> {
  const bytes =
    file === '-'
      ? await stdin.bytes()
      : await readFile(resolve(cwd, file)).catch((error: Error) => {
          throw new CommandError(`${file} cannot be read: ${error.message}.`)
        })
  const text = new TextDecoder().decode(bytes).replaceAll('\r\n', '\n')
  checkLines(text, file === '-' ? 'Standard input' : file)
  const { parseEnv } = await import('node:util')
  return parseEnv(text) as Variables
}

/** The parser passes over what it does not understand; a variable must not go missing so. */
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
