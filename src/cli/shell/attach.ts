import { writeSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { ModeWatcher } from './modes.ts'
import { enterRawMode } from './raw-mode.ts'
import { EscapeReader } from './typed.ts'

/** A terminal of a server. */
interface TerminalRef {
  readonly serverId: string
  readonly terminalId: string
}

/** How an attachment has ended. */
type AttachEnd =
  | { readonly type: 'exited'; readonly exitCode: number }
  /** The person has left; the program runs on. */
  | { readonly type: 'left' }
  /** Berth has closed the connection, or it was lost. */
  | { readonly type: 'closed'; readonly reason: string }

const HELP = '\r\nAt the start of a line:  ~. leaves it running   ~~ types a tilde   ~? explains\r\n'

/** Milliseconds of rest for a terminal that takes no more output. */
const FULL_PAUSE_MS = 2

/** Bytes typed on their way from which the keyboard is not read. */
const MOST_TYPED = 1024 * 1024
const TYPED_PAUSE_MS = 10

/** Returns the size of this process's terminal. */
export const ownSize = (): { columns: number; rows: number } => ({
  columns: process.stdout.columns || 80,
  rows: process.stdout.rows || 24,
})

/**
 * Shows a server's terminal on this process's own, until the program ends or the person leaves. The own terminal is
 * as before afterwards.
 *
 * @throws CommandError if it cannot be attached to
 */
export async function attach(client: Client, { serverId, terminalId }: TerminalRef): Promise<AttachEnd> {
  const params = { serverId, terminalId }
  const socket = client.socket('terminals.attach', { params, query: ownSize() })
  const { promise: ended, resolve: end } = Promise.withResolvers<AttachEnd>()
  const modes = new ModeWatcher()
  let isOpen = false
  socket.binaryType = 'nodebuffer'
  socket.onmessage = ({ data }: MessageEvent<string | Buffer>) => {
    if (typeof data === 'string') {
      const { exit } = JSON.parse(data) as { exit: number }
      end({ type: 'exited', exitCode: exit })
      return
    }
    modes.watch(data)
    // While this blocks, nothing more is received, so berth learns that this terminal is slow.
    writeOut(data)
  }
  socket.onclose = ({ reason }) => end({ type: 'closed', reason: reason || 'the connection was lost' })
  const opened = new Promise<void>((resolve) => {
    socket.onopen = () => {
      isOpen = true
      resolve()
    }
  })
  await Promise.race([opened, ended])
  if (!isOpen) {
    // The handshake's response cannot be read, so it is asked again in a way that can.
    await client.call('terminals.get', { params })
    throw new CommandError('The terminal cannot be attached to: the connection is refused. Try again.')
  }
  const keyboard = new Keyboard(socket, end)
  const resized = (): void => {
    const { columns, rows } = ownSize()
    socket.send(JSON.stringify({ resize: [columns, rows] }))
  }
  process.on('SIGWINCH', resized)
  try {
    return await ended
  } finally {
    process.off('SIGWINCH', resized)
    keyboard.close()
    socket.onclose = null
    socket.close()
    writeOut(Buffer.from(modes.undo()))
  }
}

/** Passes what is typed on, in raw mode. */
class Keyboard {
  readonly #socket: WebSocket
  readonly #escapes = new EscapeReader()
  readonly #end: (end: AttachEnd) => void
  readonly #onData = (bytes: Buffer): void => this.#read(bytes)
  readonly #restore: () => void
  #pause: Timer | undefined

  constructor(socket: WebSocket, end: (end: AttachEnd) => void) {
    this.#socket = socket
    this.#end = end
    const { stdin } = process
    this.#restore = enterRawMode()
    stdin.on('data', this.#onData)
    stdin.resume()
  }

  /** Gives the keyboard back. */
  close(): void {
    clearInterval(this.#pause)
    const { stdin } = process
    stdin.off('data', this.#onData)
    stdin.pause()
    this.#restore()
  }

  /** Sends what was typed, and acts on escapes. Stops reading while more than `MOST_TYPED` bytes wait to be sent. */
  #read(bytes: Buffer): void {
    for (const wish of this.#escapes.read(bytes)) {
      if (wish.type === 'send') this.#socket.send(wish.data)
      else if (wish.type === 'help') writeOut(Buffer.from(HELP))
      else this.#end({ type: 'left' })
    }
    if (this.#socket.bufferedAmount < MOST_TYPED) return
    process.stdin.pause()
    this.#pause = setInterval(() => {
      if (this.#socket.bufferedAmount >= MOST_TYPED) return
      clearInterval(this.#pause)
      process.stdin.resume()
    }, TYPED_PAUSE_MS)
  }
}

/** Writes to standard output and waits until it has taken everything. */
function writeOut(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      // Standard input and output are one terminal, and reading it has made it non-blocking.
      if (codeOf(error) !== 'EAGAIN') throw error
      Bun.sleepSync(FULL_PAUSE_MS)
    }
  }
}
