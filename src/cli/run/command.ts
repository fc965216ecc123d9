import { cannotBeExecuted } from './program.ts'
import { codeOfSignal } from './signals.ts'

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
  signalCode === null ? (exitCode ?? 1) : codeOfSignal(signalCode as NodeJS.Signals)
