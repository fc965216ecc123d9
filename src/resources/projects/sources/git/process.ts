import { listProcesses } from '../../../../compute/processes.ts'
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

/** Milliseconds that a killed session may take to end. */
const GONE_MS = 2_000
const MAX_LINE = 2_000
const MAX_OUTPUT = 4 * 1024 * 1024

/** A command to run. */
export interface GitCommand {
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
  const { args, cwd, env, signal } = command
  signal.throwIfAborted()
  const git = Bun.which('git', { PATH: env.PATH ?? '' })
  if (git === null) {
    throw new SourceError(
      'There is no git on this machine, which repositories are fetched with. Install git, then try again.',
    )
  }
  const blocks = String(Math.ceil(command.fileLimit / 512))
  const child = Bun.spawn(['/bin/sh', '-c', LIFELINE, 'sh', blocks, git, ...args], {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  // Not after it has ended: its number may be another's by then.
  const kill = () => {
    if (child.exitCode === null && child.signalCode === null) killGroup(child.pid)
  }
  signal.addEventListener('abort', kill)
  try {
    const [output] = await Promise.all([
      readOutput(child.stdout, command, kill),
      readLines(child.stderr, command.onLine),
    ])
    const code = await child.exited
    signal.throwIfAborted()
    return { code, output }
  } catch (error) {
    kill()
    throw error
  } finally {
    signal.removeEventListener('abort', kill)
    await child.exited
    if (child.signalCode !== null) await sessionEnded(child.pid)
    child.stdin.end()
  }
}

async function readOutput(
  stream: ReadableStream<Uint8Array>,
  { onOutput }: GitCommand,
  kill: () => void,
): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of stream) {
      if (onOutput) onOutput(chunk)
      else text += decoder.decode(chunk, { stream: true })
      if (text.length > MAX_OUTPUT) throw new SourceError('The repository lists more than can be read.')
    }
  } catch (error) {
    kill()
    throw error
  }
  return text
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = (lines.pop() ?? '').slice(-MAX_LINE)
    for (const line of lines) say(line, onLine)
  }
  say(rest, onLine)
}

/** Progress overwrites its line; escapes of a server's messages would reach terminals. */
function say(line: string, onLine: (line: string) => void): void {
  const last = line.replace(/\r+$/, '').split('\r').at(-1) ?? ''
  const plain = last
    .replaceAll('\t', ' ')
    .replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]|\p{Cc}/gu, '')
    .trimEnd()
  if (plain !== '') onLine(plain.slice(0, MAX_LINE))
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Already ended.
  }
}

/** Waits for a killed session: its other processes may still write after the first one is gone. */
async function sessionEnded(pid: number): Promise<void> {
  const deadline = performance.now() + GONE_MS
  for (let pause = 1; performance.now() < deadline; pause = Math.min(pause * 2, 50)) {
    if (!listProcesses().some(({ session }) => session === pid)) return
    await Bun.sleep(pause)
  }
}
