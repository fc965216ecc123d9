import { writeSync } from 'node:fs'
import { processEnvironment } from '../runtime/process-environment.ts'

/** One of the two output streams. */
export interface OutputStream {
  /** Writes data. Resolves when it has left the process, which slows the writer down to the reader's pace. */
  write(data: string | Uint8Array): Promise<void>
  /** Reports whether it is a terminal. */
  readonly isTTY: boolean
  /** The terminal's width in characters; undefined if it is none or does not tell it. */
  readonly columns?: number | undefined
  /** Reports whether colors may be used: on a terminal, and never with NO_COLOR. */
  readonly hasColors: boolean
}

/** The environment, working directory and streams of the process, as commands use them. */
export interface ProcessContext {
  readonly env: Record<string, string | undefined>
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
  const env = processEnvironment()
  return {
    env,
    cwd: process.cwd(),
    stdin: {
      get isTTY() {
        return process.stdin.isTTY === true
      },
      stream: () => Bun.stdin.stream(),
      bytes: (most) => (most === undefined ? Bun.stdin.bytes() : readUpTo(most, Bun.stdin.stream())),
    },
    stdout: outputStream(() => process.stdout, env),
    stderr: outputStream(() => process.stderr, env),
  }
}

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

function outputStream(open: () => NodeJS.WriteStream, env: ProcessContext['env']): OutputStream {
  let stream: NodeJS.WriteStream | undefined
  const opened = () => {
    if (stream) return stream
    stream = open()
    // Ends as SIGPIPE would if the reader is gone (`| head`).
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(141)
      printLog(`berth: output cannot be written: ${error.message}\n`)
      process.exit(1)
    })
    return stream
  }
  return {
    // On a failure, the error handler above ends the process, so this need not reject.
    write: (data) => new Promise((resolve) => opened().write(data, (error) => error ?? resolve())),
    get isTTY() {
      return opened().isTTY === true
    },
    get columns() {
      return opened().columns || undefined
    },
    get hasColors() {
      return opened().isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
    },
  }
}

/** Writes a line to stdout at once, without opening a stream. */
export const writeLineSync = (line: string): void => void writeSync(1, `${line}\n`)

/** Writes log lines to stderr at once. Drops a line that cannot be written. */
export function printLog(line: string): void {
  try {
    writeSync(2, line)
  } catch {
    // Nobody reads it.
  }
}
