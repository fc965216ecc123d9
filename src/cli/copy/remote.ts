import { FRAME_KINDS, FRAMES_TYPE, readFrames } from '../../resources/exec/frames.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Client, FailureBody } from '../client.ts'
import { CommandError } from '../errors.ts'
import { printable } from '../output.ts'
import { readUpTo } from '../process-context.ts'

/** A server's shell, for a copy. */
export class RemoteShell {
  readonly client: Client
  readonly serverId: string
  /** Ends what runs. */
  readonly signal: AbortSignal
  readonly #failure = new AbortController()

  /** @param interrupted fires when the person gives up */
  constructor(client: Client, serverId: string, interrupted: AbortSignal) {
    this.client = client
    this.serverId = serverId
    this.signal = AbortSignal.any([interrupted, this.#failure.signal])
  }

  /** Ends what runs because of an error here, which it then fails with. */
  fail(error: unknown): void {
    this.#failure.abort(error)
  }

  /** Returns the error of this side, if there is one; any other unchanged. */
  causeOf(error: unknown): unknown {
    return this.#failure.signal.aborted ? this.#failure.signal.reason : error
  }
}

/** What is at a path of a server. */
export type RemoteEntry =
  | { readonly kind: 'file'; readonly mode: number; readonly size: number }
  | { readonly kind: 'directory' | 'other' | 'none' }

/** Longest text of a command's standard error that is kept, and how many of its lines are shown. @bound program */
const MOST_COMPLAINT = 256 * 1024
const SHOWN_LINES = 3

/** Quotes a path for a shell so that no program takes it for an option. */
export const quotePath = (path: string): string => shellQuote([path.startsWith('-') ? `./${path}` : path])

/**
 * Runs a command on a server. Yields its standard output.
 *
 * @param input of the command; empty without one
 * @throws CommandError if it fails, with what it wrote to standard error
 */
export async function* runRemote(
  shell: RemoteShell,
  command: string,
  input?: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* run(shell, command, input)
  } catch (error) {
    throw shell.causeOf(error)
  }
}

async function* run(
  { client, serverId, signal }: RemoteShell,
  command: string,
  input: ReadableStream<Uint8Array> | undefined,
): AsyncGenerator<Uint8Array, void> {
  const parts = { params: { serverId }, query: { command }, bytes: input, signal }
  let complaint = ''
  for await (const { kind, payload } of readFrames(client.bytes('exec.stream', FRAMES_TYPE, parts))) {
    if (kind === FRAME_KINDS.stdout) yield payload
    else if (kind === FRAME_KINDS.stderr)
      complaint = (complaint + Buffer.from(payload).toString()).slice(0, MOST_COMPLAINT)
    else {
      const json: unknown = JSON.parse(Buffer.from(payload).toString())
      if (kind === FRAME_KINDS.error)
        throw client.errorFromBody(json as FailureBody) ?? new CommandError('The command could not be run.')
      const { exitCode } = json as { exitCode: number }
      if (exitCode === 0) return
      throw new CommandError(`The server could not do it: ${reasonOf(complaint, exitCode)}`)
    }
  }
  throw new CommandError('The connection closed before the copy was complete. Is berth still running?')
}

/** Runs a command with this standard input, and drops its output. @throws CommandError as `runRemote` does */
export async function feedRemote(
  shell: RemoteShell,
  command: string,
  input: AsyncIterable<Uint8Array>,
): Promise<void> {
  for await (const _ of runRemote(shell, command, streamOf(input, shell))) {
    // Its output is not needed.
  }
}

/** Unpacks a tar into a directory of a server, which is made if it is missing. @throws CommandError as `runRemote` does */
export async function unpackRemote(
  shell: RemoteShell,
  directory: string,
  tar: AsyncIterable<Uint8Array>,
): Promise<void> {
  const at = quotePath(directory)
  await feedRemote(shell, `mkdir -p ${at} && cd ${at} && exec tar -xpof -`, tar)
}

/** Returns a stream of what is iterated over. An error of the iteration aborts the request with it. */
function streamOf(content: AsyncIterable<Uint8Array>, shell: RemoteShell): ReadableStream<Uint8Array> {
  const iterator = content[Symbol.asyncIterator]()
  let isCancelled = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await iterator.next()
          // A stream that was cancelled meanwhile is closed already.
          if (isCancelled) return
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          shell.fail(error)
          controller.error(error)
        }
      },
      async cancel() {
        isCancelled = true
        await iterator.return?.()
      },
    },
    { highWaterMark: 1 },
  )
}

/** Longest answer to a look at a path, in bytes. What runs on the server may print without end. @bound program */
const MOST_ANSWER = 1024

/** Looks at a path of a server; links are followed. */
export async function lookAt(shell: RemoteShell, path: string): Promise<RemoteEntry> {
  const at = quotePath(path)
  const script = `if [ -d ${at} ]; then echo directory; elif [ -f ${at} ]; then stat -L -c 'file %a %s' -- ${at}; elif [ -e ${at} ] || [ -L ${at} ]; then echo other; else echo none; fi`
  const answer = await readUpTo(MOST_ANSWER, runRemote(shell, script))
  if (answer.length > MOST_ANSWER)
    throw new CommandError('The server describes the path in no known form: its "stat" is another program.')
  const [kind, mode = '', size = ''] = Buffer.from(answer).toString().trim().split(' ')
  if (kind === 'file') return { kind, mode: Number.parseInt(mode, 8) & 0o777, size: Number(size) }
  if (kind === 'directory' || kind === 'none') return { kind }
  return { kind: 'other' }
}

/** Returns why a command has failed: what berth itself says of it, else the first lines of its standard error. */
function reasonOf(complaint: string, exitCode: number): string {
  const lines = complaint.split('\n').filter((line) => line.trim() !== '')
  const own = lines.find((line) => line.startsWith('berth: '))
  if (own !== undefined) return `${printable(own.slice('berth: '.length))}.`
  if (lines.length === 0) return `its command ended with exit code ${exitCode}.`
  const more = lines.length - SHOWN_LINES
  const shown =
    lines.slice(0, SHOWN_LINES).map(printable).join('; ') + (more > 0 ? ` (and ${more} more)` : '')
  if (exitCode === 127) return `${shown}. Directories are copied with its "tar".`
  return complaint.includes('File too large')
    ? `${shown}. Its storage is full: remove files, or use a larger tier.`
    : shown
}
