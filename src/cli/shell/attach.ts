import { writeSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { enterRawMode } from '../../system/own-descriptors.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'

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

/** Bytes typed on their way from which the keyboard is not read. @bound client */
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

/** What a person wants by typed bytes. */
type Wish = { readonly type: 'send'; readonly data: Buffer } | { readonly type: 'leave' | 'help' }

const TILDE = 0x7e
const LINE_ENDS: ReadonlySet<number> = new Set([0x0a, 0x0d])

/**
 * Finds the escapes in what is typed, as ssh has them: at the start of a line `~.` leaves, `~?` explains, and `~~` is
 * a tilde.
 */
class EscapeReader {
  #isLineStart = true
  #isAfterTilde = false

  /** Returns the wishes in the next bytes, in order. Further bytes after `leave` are dropped. */
  read(bytes: Buffer): Wish[] {
    const wishes: Wish[] = []
    let kept: number[] = []
    const flush = (): void => {
      if (kept.length > 0) wishes.push({ type: 'send', data: Buffer.from(kept) })
      kept = []
    }
    // Nothing to look for in a paste or a program's keys: passed as it is.
    if (!this.#isAfterTilde && !bytes.includes(TILDE)) {
      const last = bytes.at(-1)
      if (last !== undefined) this.#isLineStart = LINE_ENDS.has(last)
      return bytes.length > 0 ? [{ type: 'send', data: bytes }] : []
    }
    for (const byte of bytes) {
      if (this.#isAfterTilde) {
        this.#isAfterTilde = false
        const wish = String.fromCharCode(byte)
        if (wish === '.') {
          flush()
          return [...wishes, { type: 'leave' }]
        }
        if (wish === '?') {
          flush()
          wishes.push({ type: 'help' })
          this.#isLineStart = true
          continue
        }
        kept.push(TILDE)
        if (wish === '~') {
          this.#isLineStart = false
          continue
        }
      } else if (byte === TILDE && this.#isLineStart) {
        this.#isAfterTilde = true
        continue
      }
      kept.push(byte)
      this.#isLineStart = LINE_ENDS.has(byte)
    }
    flush()
    return wishes
  }
}

/** The private modes that outlive a program that is left, and change what a terminal shows or sends (xterm, DECSET). */
const MODES: ReadonlySet<string> = new Set([
  '1', // cursor keys
  '7', // wraps at the end of a line
  '9', // the mouse, in its ways
  '25', // the cursor is shown
  '47',
  '1000',
  '1002',
  '1003',
  '1004', // focus
  '1005',
  '1006',
  '1015',
  '1047',
  '1049', // the alternate screen
  '2004', // bracketed paste
])

/** Modes that are set where no program has changed anything. */
const USUALLY_SET: ReadonlySet<string> = new Set(['7', '25'])

/** Matches a change of private modes, with its parameters and its direction. */
const CHANGE = new RegExp(`${'\x1b'}\\[\\?([\\d;]{1,64})([hl])`, 'g')

/** Bytes at the end of output that may begin a change. @bound program */
const LONGEST_CHANGE = 70

const ESCAPE = Buffer.from('\x1b[?')

/** Watches what a terminal is sent, to undo what is in effect where a program is left that goes on. */
class ModeWatcher {
  readonly #changed = new Set<string>()
  #rest = ''

  /** Notes the changes in the next bytes of output. */
  watch(bytes: Buffer): void {
    if (
      this.#rest === '' &&
      !bytes.includes(ESCAPE) &&
      !bytes.subarray(-ESCAPE.length).includes(ESCAPE[0] ?? 0)
    )
      return
    const text = this.#rest + bytes.toString('latin1')
    for (const [, parameters = '', direction] of text.matchAll(CHANGE)) {
      for (const mode of parameters.split(';')) {
        if (!MODES.has(mode)) continue
        if ((direction === 'h') === USUALLY_SET.has(mode)) this.#changed.delete(mode)
        else this.#changed.add(mode)
      }
    }
    const tail = text.slice(-LONGEST_CHANGE)
    const begun = tail.lastIndexOf('\x1b')
    this.#rest = begun >= 0 && !/[hl]/.test(tail.slice(begun)) ? tail.slice(begun) : ''
  }

  /** Returns what takes the changes back, colours included. */
  undo(): string {
    const undone = [...this.#changed].map((mode) => `\x1b[?${mode}${USUALLY_SET.has(mode) ? 'h' : 'l'}`)
    return undone.length === 0 ? '\x1b[0m' : `\x1b[0m\x1b>${undone.join('')}`
  }
}
