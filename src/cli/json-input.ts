import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { UsageError } from '../errors.ts'
import { CommandError } from './errors.ts'
import type { Terminal } from './terminal.ts'

/**
 * Reads the data of an event: a JSON object, `@FILE` for that of a file, `-` for that of standard input.
 *
 * @throws UsageError where it is none, CommandError where the file cannot be read
 */
export async function readData(
  given: string | undefined,
  { cwd, stdin }: Pick<Terminal, 'cwd' | 'stdin'>,
): Promise<object | undefined> {
  if (given === undefined) return undefined
  const fromFile = given.startsWith('@')
  const where = fromFile ? given.slice(1) : given === '-' ? 'Standard input' : '--data'
  const text = fromFile
    ? await readFile(resolve(cwd, where), 'utf8').catch((error: Error) => {
        throw new CommandError(`${where} cannot be read: ${error.message}.`)
      })
    : given === '-'
      ? new TextDecoder().decode(await stdin.bytes())
      : given
  const value = parsed(text, where)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new UsageError(`${where} must be a JSON object, such as {"server_id": "srv_1"}.`)
}

function parsed(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new UsageError(
      `${where} is not valid JSON: ${cause}. Give an object such as '{"server_id": "srv_1"}', @FILE, or - for standard input.`,
    )
  }
}
