import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { CommandError } from './errors.ts'
import type { ProcessContext } from './process-context.ts'

/**
 * Returns the error of a file or directory that cannot be read.
 *
 * @param name as the person knows it
 */
export const unreadable = (name: string, cause: unknown): CommandError =>
  new CommandError(unreadableText(name, cause))

function unreadableText(name: string, cause: unknown): string {
  const code = codeOf(cause)
  if (code === 'ENOENT') return `There is no file ${name}.`
  if (code === 'EISDIR') return `${name} is a directory: name a file.`
  if (code === 'EACCES') return `${name} may not be read by this user.`
  return `${name} cannot be read: ${messageOf(cause)}.`
}

/**
 * Reads a file of this machine.
 *
 * @param name of the file in the error
 * @throws CommandError if it cannot be read
 */
export const readLocal = (path: string, name: string): Promise<Buffer<ArrayBuffer>> =>
  readFile(path).catch((error: Error) => {
    throw unreadable(name, error)
  })

/**
 * Reads a file that a person names, relative to the working directory; `-` reads standard input.
 *
 * @throws CommandError if it cannot be read
 */
export const readNamedFile = async (file: string, { cwd, stdin }: ProcessContext): Promise<Uint8Array> =>
  file === '-' ? stdin.bytes() : readLocal(resolve(cwd, file), file)
