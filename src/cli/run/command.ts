import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { signalExitCode } from './signals.ts'

/** The command that runs, with the streams of this process. */
type RunningCommand = Bun.Subprocess<'inherit', 'inherit', 'inherit'>

/** How to start a command. */
interface CommandStart {
  /** Path of its program. */
  program: string
  /** Its words as given. */
  command: readonly string[]
  env: Record<string, string | undefined>
  /** Signals that the command ignores, because this process was started with them ignored. */
  ignored: ReadonlySet<string>
}

/** Ignores the signals in `$0`, then executes the rest. A program inherits ignored signals. */
const IGNORE = 'trap "" $0; exec "$@"'

/**
 * Starts the command in the process group of this process.
 *
 * @throws CommandError with exit code 126 if it cannot be executed
 */
export function spawnCommand({ program, command, env, ignored }: CommandStart): RunningCommand {
  const [name = program, ...args] = command
  const spawn = (argv: string[], argv0 = argv[0]): RunningCommand =>
    Bun.spawn(argv, {
      env,
      stdio: ['inherit', 'inherit', 'inherit'],
      ...(argv0 === undefined ? {} : { argv0 }),
    })
  try {
    if (ignored.size > 0) {
      const names = [...ignored].map((signal) => signal.slice('SIG'.length)).join(' ')
      return spawn(['/bin/sh', '-c', IGNORE, names, program, ...args])
    }
    return spawn([program, ...args], name)
  } catch (error) {
    const code = codeOf(error)
    // A script without an interpreter line: shells run it themselves.
    if (code === 'ENOEXEC') return spawn(['/bin/sh', program, ...args])
    if (code === 'ENOENT')
      throw cannotBeExecuted(program, 'The interpreter that its first line names is missing.')
    throw cannotBeExecuted(program, messageOf(error))
  }
}

/** Returns the exit code of a command that has ended; 128+n after signal n. */
export const exitCodeOf = ({ exitCode, signalCode }: RunningCommand): number =>
  signalCode === null ? (exitCode ?? 1) : signalExitCode(signalCode as NodeJS.Signals)

/** Exit codes that shells give (POSIX.1-2024, XCU 2.8.2). */
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126

/**
 * Finds the program of a command as a shell does: a name with a slash is a path, any other is searched for in PATH.
 *
 * @returns its path
 * @throws CommandError with exit code 127 if there is none, 126 if it cannot be executed
 */
export function findProgram(name: string, { env, cwd }: Pick<ProcessContext, 'env' | 'cwd'>): string {
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

/** Returns the error of a program that exists and cannot be started. */
const cannotBeExecuted = (program: string, why: string): CommandError =>
  new CommandError(`${program} cannot be executed. ${why}`, NOT_EXECUTABLE)

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // Missing, or not permitted.
    return false
  }
}
