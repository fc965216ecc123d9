import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { type ProcessContext, readUpTo } from '../process-context.ts'

/** Largest size of a text in bytes: the API takes 1,048,576 characters, of up to four bytes each. @bound owner */
const MAX_BYTES = 4 * 1024 * 1024

/**
 * Reads a goal from the argument, a file, or standard input for `-`.
 *
 * @throws UsageError if there is none, or two; CommandError if it cannot be read
 */
export async function readGoal(
  given: string | undefined,
  file: string | undefined,
  context: ProcessContext,
): Promise<string> {
  if (given !== undefined && file !== undefined)
    throw new UsageError('Give the goal once: in words or with --file.')
  if (given === undefined && file === undefined)
    throw new UsageError(
      'Say what is to be reached: berth tasks run "GOAL", or - to read it from standard input.',
    )
  const from = file ?? (given === '-' ? '-' : undefined)
  const goal = from === undefined ? (given ?? '') : await readText(from, context)
  if (goal.trim() === '') throw new UsageError('The goal is empty.')
  return goal
}

/**
 * Reads the text of a file or of standard input, without its final newline.
 *
 * @throws CommandError
 */
export async function readText(file: string, { cwd, stdin, stderr }: ProcessContext): Promise<string> {
  const name = file === '-' ? 'Standard input' : file
  if (file === '-' && stdin.isTTY) await stderr.write('berth: type the text, then Enter and Ctrl-D\n')
  const bytes =
    file === '-'
      ? await stdin.bytes(MAX_BYTES)
      : await readUpTo(MAX_BYTES, createReadStream(resolve(cwd, file))).catch((error: Error) => {
          throw unreadable(file, error)
        })
  if (bytes.length > MAX_BYTES)
    throw new CommandError(`${name} is too long: 1,048,576 characters are the most.`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    throw new CommandError(`${name} is not UTF-8 text.`)
  }
}
