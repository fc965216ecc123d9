import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { signalExitCode } from './signals.ts'

/** The command that is run, with the streams of this process. */
export type RunningCommand = Bun.Subprocess<'inherit', 'inherit', 'inherit'>

/** What a command is started with. */
export interface CommandStart {
  /** The file of its program. */
  program: string
  /** Its words as they were given. */
  command: readonly string[]
  env: Record<string, string | undefined>
  /** Signals that the command ignores, because this process was started with them ignored. */
  ignored: ReadonlySet<string>
}

/** Ignores the signals that `$0` names, then executes the rest. A program keeps the signals ignored that it inherits so. */
const IGNORE = 'trap "" $0; exec "$@"'

/** Starts the command in the process group of this process. @throws CommandError with 126 where it cannot be executed */
export function startCommand({ program, command, env, ignored }: CommandStart): RunningCommand {
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
    const { code } = error as { code?: string }
    // A script without a first line that says what runs it: shells run it themselves.
    if (code === 'ENOEXEC') return spawn(['/bin/sh', program, ...args])
    if (code === 'ENOENT')
      throw cannotBeExecuted(program, 'The interpreter that its first line names is missing.')
    throw cannotBeExecuted(program, error instanceof Error ? error.message : String(error))
  }
}

/** Its exit code once it has ended, 128+n where signal n did that. */
export const exitCodeOf = ({ exitCode, signalCode }: RunningCommand): number =>
  signalCode === null ? (exitCode ?? 1) : signalExitCode(signalCode as NodeJS.Signals)

/** Exit codes that shells give (POSIX.1-2024, XCU 2.8.2). */
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126

/**
 * Finds the file of a command as a shell does: a name with a slash is a path, any other is looked for in PATH.
 *
 * @returns its path
 * @throws CommandError with exit code 127 where there is none, 126 where it cannot be executed
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

/** The error of a program that is there and cannot be started. */
const cannotBeExecuted = (program: string, why: string): CommandError =>
  new CommandError(`${program} cannot be executed. ${why}`, NOT_EXECUTABLE)

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
