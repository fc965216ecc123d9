import { HelperError, runHelper } from '../../../../runtime/run-helper.ts'
import { SourceError } from '../errors.ts'

/**
 * Runs a command in a process group that cannot outlive berth: a watcher in the group ends all of it as soon as its
 * standard input closes, which the kernel does however berth ends. `$1` bounds every file that is written.
 */
const LIFELINE = `ulimit -c 0; ulimit -f "$1" 2>/dev/null; shift
exec 3<&0 </dev/null
(exec >/dev/null 2>&1; read -r _ <&3; kill -KILL 0) & watcher=$!
exec 3<&-
"$@"; code=$?
kill -KILL $watcher; wait $watcher 2>/dev/null
exit $code`

/** @bound peer */
const MAX_LINE = 2_000
const MAX_OUTPUT = 4 * 1024 * 1024

/** The exit code of a command that a signal ended. */
const SIGNALLED = 128

/** A command to run. */
interface GitCommand {
  args: readonly string[]
  cwd: string
  env: Record<string, string>
  /** Bytes that any file it writes may have. */
  fileLimit: number
  /** Ends the command and everything it started. */
  signal: AbortSignal
  /** Receives standard error, line by line; of an overwritten line, the last version. */
  onLine(line: string): void
  /** Receives standard output in pieces; an exception ends the command. */
  onOutput?(chunk: Uint8Array): void
}

/**
 * Runs git to its end and resolves to its exit code and standard output, which is empty with `onOutput`.
 *
 * @throws SourceError if git is not installed; the signal's reason; what `onOutput` throws
 */
export async function runGit(command: GitCommand): Promise<{ code: number; output: string }> {
  const { args, cwd, env, signal, onOutput } = command
  signal.throwIfAborted()
  const git = Bun.which('git', { PATH: env.PATH ?? '' })
  if (git === null) {
    throw new SourceError(
      'There is no git on this machine, which repositories are fetched with. Install git, then try again.',
    )
  }
  const blocks = String(Math.ceil(command.fileLimit / 512))
  const lines = new LineReader(command.onLine)
  try {
    const { exitCode, stdout } = await runHelper(['/bin/sh', '-c', LIFELINE, 'sh', blocks, git, ...args], {
      cwd,
      env,
      signal,
      keepsStdinOpen: true,
      outputLimit: MAX_OUTPUT,
      onStderr: (chunk) => lines.push(chunk),
      ...(onOutput === undefined ? {} : { onStdout: onOutput }),
    })
    lines.end()
    // As shells report a signal.
    return { code: exitCode ?? SIGNALLED, output: stdout }
  } catch (error) {
    if (error instanceof HelperError && error.reason === 'output-limit') {
      throw new SourceError('The repository lists more than can be read.')
    }
    throw error
  }
}

/** Cuts pieces of text into lines. */
class LineReader {
  readonly #onLine: (line: string) => void
  readonly #decoder = new TextDecoder()
  #rest = ''

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  push(chunk: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n')
    this.#rest = (lines.pop() ?? '').slice(-MAX_LINE)
    for (const line of lines) emitLine(line, this.#onLine)
  }

  /** Emits the last line, which has no line end. */
  end(): void {
    emitLine(this.#rest, this.#onLine)
  }
}

/** Emits a line: of overwritten progress the last version, without escape sequences, which would reach terminals. */
function emitLine(line: string, onLine: (line: string) => void): void {
  const last = line.replace(/\r+$/, '').split('\r').at(-1) ?? ''
  const plain = last
    .replaceAll('\t', ' ')
    .replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]|\p{Cc}/gu, '')
    .trimEnd()
  if (plain !== '') onLine(plain.slice(0, MAX_LINE))
}
