import type { Readable } from 'node:stream'
import { codeOf } from './error-info.ts'

/** Bytes that a helper may write to standard output, and to standard error, by default. @bound program */
const OUTPUT_LIMIT = 2 ** 20

/** Milliseconds that a killed group may take to end. */
const GONE_MS = 2_000

/** How a helper is run. */
export interface HelperOptions {
  readonly cwd?: string
  /** The whole environment; by default berth's own. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Milliseconds after which the helper is ended; by default it may take any time. */
  readonly timeoutMs?: number
  /** Ends the helper. */
  readonly signal?: AbortSignal
  /** Bytes that it may write to each of its outputs before it is ended; 1 MiB by default. */
  readonly outputLimit?: number
  /** Whether its standard input stays open until it ends; by default it reads an end at once. */
  readonly keepsStdinOpen?: boolean
  /**
   * What becomes of its output: it is collected, which is the default, or it goes nowhere. The latter is for programs
   * that leave others running, which would hold a pipe open.
   */
  readonly output?: 'collect' | 'ignore'
  /** Receives standard output in pieces instead of the result; an exception ends the helper and is thrown. */
  readonly onStdout?: (chunk: Uint8Array) => void
  /** Receives standard error in pieces instead of the result; an exception ends the helper and is thrown. */
  readonly onStderr?: (chunk: Uint8Array) => void
}

/** How a helper ended. */
interface HelperResult {
  /** Null if a signal ended it. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A helper could not be run to its end. The message names the program, the cause and the remedy. */
export class HelperError extends Error {
  override readonly name = 'HelperError'

  constructor(
    readonly reason: 'not-started' | 'timeout' | 'output-limit',
    message: string,
    /** Process id, which is also that of its session and its process group; null if it did not start. */
    readonly pid: number | null,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/**
 * Runs a short helper program, such as git or cp, to its end. It has a session and a process group of its own. If it is
 * ended early, the whole group is, and this rejects when all of it is gone. Long-lived processes, and those on hot paths,
 * are started by `Bun.spawn` instead: execa takes a millisecond more, and longer the first time.
 *
 * @param argv the program, a path or a name to be found in PATH, and its arguments
 * @throws HelperError; the signal's reason; what `onStdout` and `onStderr` throw
 */
export async function runHelper(
  argv: readonly [program: string, ...args: string[]],
  options: HelperOptions = {},
): Promise<HelperResult> {
  const { cwd, env, timeoutMs, signal, outputLimit = OUTPUT_LIMIT, onStdout, onStderr } = options
  const [program, ...args] = argv
  signal?.throwIfAborted()
  const { execa } = await import('execa')
  signal?.throwIfAborted()
  const pipe = options.output === 'ignore' ? 'ignore' : 'pipe'
  const child = execa(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env, extendEnv: false }),
    stdin: options.keepsStdinOpen ? 'pipe' : 'ignore',
    stdout: pipe,
    stderr: pipe,
    // execa's own kill leaves grandchildren; the group is killed below.
    detached: true,
    reject: false,
    buffer: false,
  })
  const { pid, nodeChildProcess: node } = child
  if (pid === undefined) throw notStarted(program, await child)
  let done = false
  let failure: { error: unknown } | null = null
  const end = (error: unknown): void => {
    failure ??= { error }
    // Not later: once all have ended, the number may be another's. It is not while one holds an output open.
    if (!done) killGroup(pid)
  }
  const abort = (): void => end(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          const seconds = timeoutMs / 1_000
          end(
            new HelperError(
              'timeout',
              `${program} took more than ${seconds} s, and was ended. Try again.`,
              pid,
            ),
          )
        }, timeoutMs)
  try {
    const tooMuch = (): HelperError =>
      new HelperError(
        'output-limit',
        `${program} printed more than ${outputLimit} bytes, and was ended.`,
        pid,
      )
    const [result, stdout, stderr] = await Promise.all([
      child,
      collect(child.stdout, { limit: outputLimit, onChunk: onStdout, tooMuch, end }),
      collect(child.stderr, { limit: outputLimit, onChunk: onStderr, tooMuch, end }),
    ])
    done = true
    if (failure !== null) {
      await groupGone(pid)
      throw (failure as { error: unknown }).error
    }
    return { exitCode: result.exitCode ?? null, stdout, stderr }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    node.stdin?.end()
  }
}

/** How an output is read. */
interface Collecting {
  limit: number
  onChunk: ((chunk: Uint8Array) => void) | undefined
  tooMuch: () => HelperError
  end: (error: unknown) => void
}

/** Reads an output to its end; resolves to its text, which is empty if a receiver gets the pieces. */
async function collect(
  output: Readable | null,
  { limit, onChunk, tooMuch, end }: Collecting,
): Promise<string> {
  if (output === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of output as AsyncIterable<Uint8Array>) {
      if (onChunk) onChunk(chunk)
      else if (size + chunk.length > limit) throw tooMuch()
      else chunks.push(chunk)
      size += chunk.length
    }
  } catch (error) {
    end(error)
  }
  return Buffer.concat(chunks).toString()
}

function notStarted(program: string, { cause }: { cause?: unknown }): HelperError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new HelperError(
    'not-started',
    `${program} cannot be started: ${why}. Install it, or add its directory to PATH.`,
    null,
    { cause },
  )
}

/** Sends a signal to a process group; 0 sends none. @returns whether the group has a process */
function killGroup(pid: number, signal: 'SIGKILL' | 0 = 'SIGKILL'): boolean {
  try {
    return process.kill(-pid, signal)
  } catch (error) {
    // Of processes that have changed their user, the system says EPERM.
    return codeOf(error) !== 'ESRCH'
  }
}

/** Waits for a killed group: its other processes may still write after the first one is gone. */
async function groupGone(pid: number): Promise<void> {
  const deadline = performance.now() + GONE_MS
  for (let pause = 1; killGroup(pid, 0) && performance.now() < deadline; pause = Math.min(2 * pause, 50)) {
    await Bun.sleep(pause)
  }
}
