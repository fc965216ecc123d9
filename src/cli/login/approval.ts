import { hostname } from 'node:os'
import { challengeOf } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import { canOpenBrowser, openInBrowser } from '../browser.ts'
import { CommandError } from '../errors.ts'
import { askLine, canAsk } from '../prompt.ts'
import type { Terminal } from '../terminal.ts'
import { type Ending, listenForCallback } from './callback.ts'

/** A person's approval. */
export interface Approved {
  attempt: Attempt
  code: string
  /** Asks for the code once more; null where nobody typed it. */
  again: (() => Promise<string>) | null
  /** Shows in the person's browser how it ended, if it came back by itself. */
  end: (ending: Ending) => Promise<void>
}

/** What is asked for. */
export interface Wanted {
  baseUrl: string
  label: string | undefined
  /** Whether a browser is to be opened. */
  browser: boolean
}

/**
 * Has a person approve in a browser: in one that is opened here and comes back to this machine, else in any, from
 * which the code is typed in.
 *
 * @throws CommandError if it is denied or there is no code; the signal's reason when it fires
 */
export async function awaitApproval(
  { baseUrl, label, browser }: Wanted,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Approved> {
  const asking = { baseUrl, attempt: newAttempt(), host: hostname(), label, port: null }
  const approved = browser && canOpenBrowser(terminal) ? await byBrowser(asking, terminal, signal) : null
  return approved ?? byCode(asking, terminal, signal)
}

/** Null where the browser could not be opened. */
async function byBrowser(asking: Asking, terminal: Terminal, signal: AbortSignal): Promise<Approved | null> {
  const { attempt } = asking
  const listener = listenForCallback(attempt.state)
  try {
    const url = pageUrl({ ...asking, port: listener.port })
    await terminal.stderr.write(
      `Approve in the browser that opens. Where none does, open this address on this machine:\n\n  ${url}\n\n`,
    )
    // It may stay for as long as the browser does.
    const failed = openInBrowser(url, terminal).then((opened) => (opened ? never() : null))
    const callback = await Promise.race([listener.arrived, failed, aborted(signal)])
    if (callback === null) {
      await terminal.stderr.write('The browser could not be opened.\n')
      await listener.stop()
      return null
    }
    const end = (ending: Ending): Promise<void> => {
      callback.respond(ending)
      return listener.stop()
    }
    if (callback.code !== null) return { attempt, code: callback.code, again: null, end }
    await end({ title: 'Denied', text: 'The terminal gets no key. You can close this page.' })
    throw new CommandError('It was denied in the browser; nothing was changed.')
  } catch (error) {
    await listener.stop()
    throw error
  }
}

async function byCode(asking: Asking, terminal: Terminal, signal: AbortSignal): Promise<Approved> {
  await terminal.stderr.write(
    `Open this address in a browser, approve, and type in the code that it shows:\n\n  ${pageUrl(asking)}\n\n`,
  )
  const read = (): Promise<string> => readCode(terminal, signal)
  return {
    attempt: asking.attempt,
    code: await read(),
    again: canAsk(terminal) ? read : null,
    end: async () => {},
  }
}

const never = (): Promise<never> => new Promise(() => {})

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    if (signal.aborted) reject(signal.reason)
  })

/** What a terminal makes up for one sign-in. */
export interface Attempt {
  /** Leaves the terminal with the code alone, for the instance (RFC 7636, 4.1). */
  readonly verifier: string
  /** S256 of the verifier, which the browser carries. */
  readonly challenge: string
  /** The terminal knows the browser's callback by it. */
  readonly state: string
}

/** A new one, by the system's randomness. */
function newAttempt(): Attempt {
  const verifier = newSecret(systemRandom)
  return { verifier, challenge: challengeOf(verifier), state: newSecret(systemRandom) }
}

/** What the page shows of the terminal. */
interface Asking {
  baseUrl: string
  attempt: Attempt
  /** The name of this machine. */
  host: string
  label: string | undefined
  /** Where the terminal listens; null where the code is typed in. */
  port: number | null
}

/** The address of the page on which a person approves. It carries nothing secret. */
function pageUrl({ baseUrl, attempt, host, label, port }: Asking): string {
  const query = new URLSearchParams({
    challenge: attempt.challenge,
    ...(port === null ? {} : { state: attempt.state, redirect_port: String(port) }),
    host,
    ...(label === undefined ? {} : { label }),
  })
  return `${baseUrl}/cli/authorize?${query}`
}

/** Bytes within which a line with a code ends. */
const LINE_BYTES = 1_000

/**
 * Reads the code that a person types, or the first line of standard input where that is no terminal.
 *
 * @throws CommandError if there is none; the signal's reason when it fires
 */
async function readCode(terminal: Terminal, signal: AbortSignal): Promise<string> {
  const line = canAsk(terminal) ? await typedLine(signal) : await firstLine(signal)
  signal.throwIfAborted()
  const code = line?.trim() ?? ''
  if (code !== '') return code
  throw new CommandError('No code was given; nothing was changed. Run "berth login" again.')
}

/** The first line with something on it: a person who waits for the prompt may press Enter. */
async function typedLine(signal: AbortSignal): Promise<string | null> {
  for (;;) {
    // The address is printed before the prompt: a code that is pasted at once was meant for it.
    const lines = await askLine('Code: ', signal, 'counts')
    const line = lines === null ? null : lines.split('\n').find((text) => text.trim() !== '')
    if (line !== undefined) return line
  }
}

/** The writer of standard input may keep it open. */
async function firstLine(signal: AbortSignal): Promise<string> {
  const reader = Bun.stdin.stream().getReader()
  const end = (): void => void reader.cancel()
  signal.addEventListener('abort', end, { once: true })
  const decoder = new TextDecoder()
  let text = ''
  while (!signal.aborted && text.length < LINE_BYTES && !text.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  signal.removeEventListener('abort', end)
  await reader.cancel()
  return text.split('\n')[0] ?? ''
}
