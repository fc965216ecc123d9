import { fstatSync, writeSync } from 'node:fs'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { processEnvironment, setVariables } from '../runtime/process-environment.ts'
import { forTerminal } from './terminal-text.ts'

/** One of the two output streams. */
export interface OutputStream {
  /**
   * Writes data. Resolves when it has left the process, which slows the writer down to the reader's pace. A terminal gets
   * bytes as they are, and of a text what `forTerminal` lets pass.
   */
  write(data: string | Uint8Array): Promise<void>
  /** Reports whether it is a terminal. */
  readonly isTTY: boolean
  /** The terminal's width in characters; undefined if it is not a terminal or reports no width. */
  readonly columns?: number | undefined
  /** Reports whether colors may be used: on a terminal, and never with NO_COLOR. */
  readonly hasColors: boolean
}

/** The environment, working directory and streams of the process, as commands use them. */
export interface ProcessContext {
  /** The variables that are set: an empty one is not. */
  readonly env: Record<string, string | undefined>
  /** All variables, the empty ones too, for programs that berth starts for a person. */
  readonly inherited: Record<string, string | undefined>
  /** The working directory. */
  readonly cwd: string
  readonly stdin: {
    readonly isTTY: boolean
    /** Returns the bytes as they come. */
    stream(): ReadableStream<Uint8Array>
    /** Reads everything. With `most`, stops once it has more bytes than that. */
    bytes(most?: number): Promise<Uint8Array>
  }
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/** Returns the context of this process. Its streams are opened when first used: opening costs milliseconds. */
export function processContext(): ProcessContext {
  const env = setVariables()
  return {
    env,
    inherited: processEnvironment(),
    cwd: process.cwd(),
    stdin: {
      get isTTY() {
        return isTerminal(0)
      },
      stream: () => Bun.stdin.stream(),
      bytes: (most) => (most === undefined ? Bun.stdin.bytes() : readUpTo(most, Bun.stdin.stream())),
    },
    stdout: outputStream(1, env),
    stderr: outputStream(2, env),
  }
}

/** Reports whether a person can be asked. */
export const isInteractive = ({ stdin, stderr }: ProcessContext): boolean => stdin.isTTY && stderr.isTTY

/** Reads chunks until their end or until they exceed `most` bytes: some inputs never end. */
export async function readUpTo(most: number, chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const read: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    read.push(chunk)
    size += chunk.length
    if (size > most) break
  }
  return Buffer.concat(read)
}

/** The major number of the devices that are memory, such as /dev/null, and no terminal: Linux, devices.txt. */
const MEMORY_DEVICES = 1

/**
 * Reports whether a descriptor is a terminal. Asks for the stream only if it may be one: that loads the streams of
 * `node:`, which take longer than everything else that a short command does.
 */
function isTerminal(descriptor: 0 | 1 | 2): boolean {
  try {
    const file = fstatSync(descriptor)
    if (!file.isCharacterDevice() || ((file.rdev >> 8) & 0xfff) === MEMORY_DEVICES) return false
  } catch {
    // It is closed.
    return false
  }
  // Only its own stream: to open those of the others takes time too.
  return (descriptor === 0 ? process.stdin : terminal(descriptor)).isTTY === true
}

/** Returns standard output or standard error. */
function outputStream(descriptor: 1 | 2, env: ProcessContext['env']): OutputStream {
  let writer: ((data: string | Uint8Array) => Promise<unknown>) | undefined
  let isTTY: boolean | undefined
  const stream: OutputStream = {
    async write(data) {
      try {
        writer ??= stream.isTTY ? terminalWriter(descriptor) : fileWriter(descriptor)
        await writer(data)
      } catch (error) {
        // Ends as SIGPIPE would if the reader is gone (`| head`).
        if (codeOf(error) === 'EPIPE') process.exit(141)
        printLog(`berth: output cannot be written: ${messageOf(error)}\n`)
        process.exit(1)
      }
    },
    get isTTY() {
      isTTY ??= isTerminal(descriptor)
      return isTTY
    },
    get columns() {
      return (stream.isTTY && terminal(descriptor).columns) || undefined
    },
    get hasColors() {
      return stream.isTTY && !env.NO_COLOR && env.TERM !== 'dumb'
    },
  }
  return stream
}

const terminal = (descriptor: 1 | 2): NodeJS.WriteStream =>
  descriptor === 1 ? process.stdout : process.stderr

function terminalWriter(descriptor: 1 | 2): (data: string | Uint8Array) => Promise<void> {
  const stream = terminal(descriptor)
  // Each write reports its own failure.
  stream.on('error', () => {})
  return (data) =>
    new Promise((resolve, reject) => {
      const shown = typeof data === 'string' ? forTerminal(data) : data
      stream.write(shown, (error) => (error ? reject(error) : resolve()))
    })
}

function fileWriter(descriptor: 1 | 2): (data: string | Uint8Array) => Promise<unknown> {
  const sink = (descriptor === 1 ? Bun.stdout : Bun.stderr).writer()
  // Both fail if the reader is gone.
  return (data) => Promise.all([sink.write(data), sink.flush()])
}

/** Writes a line to stdout at once, without opening a stream. */
export const writeLineSync = (line: string): void => void writeSync(1, `${line}\n`)

/** Writes log lines to stderr at once. Drops a line that cannot be written. */
export function printLog(line: string): void {
  try {
    writeSync(2, forTerminal(line))
  } catch {
    // Nobody reads it.
  }
}
