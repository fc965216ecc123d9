import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CommandError } from '../errors.ts'
import type { Terminal } from '../terminal.ts'

/** Exit codes that shells give (POSIX.1-2024, XCU 2.8.2). */
export const NOT_FOUND = 127
export const NOT_EXECUTABLE = 126

/**
 * Finds the file of a command as a shell does: a name with a slash is a path, any other is looked for in PATH.
 *
 * @returns its path
 * @throws CommandError with exit code 127 where there is none, 126 where it cannot be executed
 */
export function findProgram(name: string, { env, cwd }: Pick<Terminal, 'env' | 'cwd'>): string {
  const candidates = name.includes('/')
    ? [resolve(cwd, name)]
    : (env.PATH ?? '').split(':').map((directory) => resolve(cwd, join(directory, name)))
  const present = name === '' ? [] : candidates.filter((path) => existsSync(path))
  const program = present.find(isExecutable)
  if (program !== undefined) return program
  const [found] = present
  if (found === undefined) {
    const where = name.includes('/') ? 'There is no such file.' : 'It is in no directory of PATH.'
    throw new CommandError(`${JSON.stringify(name)} is not found. ${where}`, NOT_FOUND)
  }
  throw cannotBeExecuted(
    found,
    statSync(found, { throwIfNoEntry: false })?.isDirectory()
      ? 'It is a directory.'
      : 'Give it the right with chmod +x.',
  )
}

/** The error of a program that is there and cannot be started. */
export const cannotBeExecuted = (program: string, why: string): CommandError =>
  new CommandError(`${program} cannot be executed. ${why}`, NOT_EXECUTABLE)

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
