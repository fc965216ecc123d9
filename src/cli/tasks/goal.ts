import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { CommandError } from '../errors.ts'
import type { Terminal } from '../terminal.ts'

/**
 * A goal as it is given: in so many words, or in a file, or `-` for standard input.
 *
 * @throws UsageError where there is none, or two; CommandError where it cannot be read
 */
export async function readGoal(
  given: string | undefined,
  file: string | undefined,
  terminal: Terminal,
): Promise<string> {
  if (given !== undefined && file !== undefined)
    throw new UsageError('Give the goal once: in words or with --file.')
  if (given === undefined && file === undefined)
    throw new UsageError(
      'Say what is to be reached: berth tasks run "GOAL", or - to read it from standard input.',
    )
  const from = file ?? (given === '-' ? '-' : undefined)
  const goal = from === undefined ? (given ?? '') : await readText(from, terminal)
  if (goal.trim() === '') throw new UsageError('The goal is empty.')
  return goal
}

/** The text of a file or of standard input, without the line's end that it ends with. @throws CommandError */
export async function readText(file: string, { cwd, stdin }: Terminal): Promise<string> {
  const bytes =
    file === '-'
      ? await stdin.bytes()
      : await readFile(resolve(cwd, file)).catch((error: Error) => {
          throw new CommandError(`${file} cannot be read: ${error.message}.`)
        })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    throw new CommandError(`${file === '-' ? 'Standard input' : file} is not UTF-8 text.`)
  }
}
