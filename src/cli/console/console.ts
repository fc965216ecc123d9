import { messageOf } from '../../runtime/error-info.ts'
import { processes } from '../../system/processes.ts'
import { openInBrowser } from '../browser.ts'
import { Client } from '../client.ts'
import { resetState, resetText } from '../nouns/snapshots.ts'
import { paint } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { followRequests, hasSeveralAccounts } from '../requests/follow.ts'
import { requestText } from '../requests/text.ts'

/** The instance that a console shows. */
interface ConsoleInstance {
  readonly baseUrl: string
  readonly adminToken: string
  /** Whether a reset loses what is kept for the next start. */
  readonly isKept: boolean
}

/** What `berth serve` shows on a terminal after its banner, until it is closed. */
export interface Console {
  /** Ends the output and gives the keyboard back. */
  close(): Promise<void>
}

const HELP = `  o  open in the browser     l  bodies on or off     c  clear the screen
  r  reset to just-started   q  quit                 ?  this list
`

/** Clears the screen and what was scrolled off it (ECMA-48, section 8.3.39; xterm). */
const CLEAR = Buffer.from('\x1b[H\x1b[2J\x1b[3J')

/**
 * Prints a line for each request to an instance of this process, and acts on keys.
 *
 * @param quit ends the instance, as Ctrl-C does
 */
export function openConsole(instance: ConsoleInstance, context: ProcessContext, quit: () => void): Console {
  const client = new Client({
    baseUrl: instance.baseUrl,
    credential: instance.adminToken,
    source: 'data directory',
  })
  const closed = new AbortController()
  const screen = new RequestScreen(client, context, closed.signal)
  const { stdout } = context
  const say = (text: string): Promise<void> => stdout.write(`${text}\n`)
  let isAsking = false

  const reset = async (): Promise<void> => {
    const result = await resetState(client, true)
    await say(resetText({ ...result, took_ms: Math.round(result.took_ms) }).trimEnd())
  }
  const open = async (): Promise<void> => {
    const { url } = await client.call('control.signInLinks.create', { body: {} })
    const isOpen = await openInBrowser(url, context)
    await say(isOpen ? `Opened ${instance.baseUrl} in the browser.` : `Open this within five minutes: ${url}`)
  }
  const actions: Readonly<Record<string, () => Promise<void> | void>> = {
    o: open,
    l: () => say(screen.toggleBodies() ? 'Bodies are shown.' : 'Bodies are not shown.'),
    c: () => stdout.write(CLEAR),
    r: async () => {
      if (!instance.isKept) return reset()
      isAsking = true
      await stdout.write(
        'Reset? Servers, files, projects and keys of this data directory are removed. [y/N] ',
      )
    },
    q: quit,
    '\x03': quit,
    '?': () => stdout.write(HELP),
  }
  const act = async (key: string): Promise<void> => {
    try {
      if (!isAsking) return await actions[key]?.()
      isAsking = false
      await say(key === 'y' ? 'y' : 'no')
      if (key === 'y') await reset()
    } catch (error) {
      if (!closed.signal.aborted) await say(paint(stdout, 'red', messageOf(error)))
    }
  }
  const keys: Keys | null = context.stdin.isTTY ? readKeys((key) => void act(key)) : null
  const shown = screen.show()
  return {
    async close() {
      keys?.close()
      closed.abort()
      await shown
    },
  }
}

/** The lines of requests. */
class RequestScreen {
  readonly #client: Client
  readonly #context: ProcessContext
  readonly #closed: AbortSignal
  #bodies = false

  constructor(client: Client, context: ProcessContext, closed: AbortSignal) {
    this.#client = client
    this.#context = context
    this.#closed = closed
  }

  /** Shows the bodies of further requests, or no longer. Returns whether they are shown. */
  toggleBodies(): boolean {
    this.#bodies = !this.#bodies
    return this.#bodies
  }

  /** Prints requests until the console is closed. */
  async show(): Promise<void> {
    const { stdout } = this.#context
    try {
      const accounts = await hasSeveralAccounts(this.#client)
      const requests = followRequests({
        connect: async () => this.#client,
        query: {},
        signal: this.#closed,
        // The instance is this process.
        onConnectionChange: async () => {},
      })
      for await (const entry of requests)
        await stdout.write(requestText(stdout, entry, { bodies: this.#bodies, headers: false, accounts }))
    } catch (error) {
      if (this.#closed.aborted) return
      await stdout.write(paint(stdout, 'red', `Requests are no longer shown: ${messageOf(error)}\n`))
    }
  }
}

/** Keys that are read from the terminal. */
export interface Keys {
  /** Gives the keyboard back. */
  close(): void
}

/** Milliseconds between looks whether a job that was put in the background is back. */
const FOREGROUND_EVERY_MS = 500

/** Suspends the process, as a terminal does that is not in raw mode. */
const CTRL_Z = '\x1a'

/**
 * Calls `press` with each key that is typed, while the process is in the terminal's foreground: reading in the
 * background would stop it (SIGTTIN).
 */
export function readKeys(press: (key: string) => void): Keys {
  const { stdin } = process
  const onData = (data: Buffer): void => {
    for (const key of data.toString('latin1')) {
      if (key === CTRL_Z) suspend()
      else press(key)
    }
  }
  let isReading = false
  let waiting: Timer | undefined
  const begin = (): void => {
    if (isReading || !(processes.isInForeground() ?? true)) return
    clearInterval(waiting)
    isReading = true
    stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.resume()
  }
  const end = (): void => {
    if (!isReading) return
    isReading = false
    stdin.off('data', onData)
    stdin.pause()
    if (processes.isInForeground() ?? true) stdin.setRawMode(false)
  }
  const suspend = (): void => {
    end()
    process.kill(process.pid, 'SIGTSTP')
  }
  const resume = (): void => {
    begin()
    // A shell says nothing when it brings a job back that ran in the background.
    clearInterval(waiting)
    if (!isReading) waiting = setInterval(begin, FOREGROUND_EVERY_MS)
  }
  process.on('SIGCONT', resume)
  process.on('exit', end)
  begin()
  return {
    close() {
      process.off('SIGCONT', resume)
      clearInterval(waiting)
      process.off('exit', end)
      end()
    },
  }
}
