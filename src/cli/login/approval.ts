import { hostname } from 'node:os'
import { canOpenBrowser, openInBrowser } from '../browser.ts'
import { CommandError } from '../errors.ts'
import { canAsk } from '../tasks/prompt.ts'
import type { Terminal } from '../terminal.ts'
import { type Asking, type Attempt, newAttempt, pageUrl } from './attempt.ts'
import { type Ending, listenForCallback } from './callback.ts'
import { readCode } from './read-code.ts'

/** A person's approval. */
export interface Approved {
  attempt: Attempt
  code: string
  /** Asks for the code once more; null where nobody typed it. */
  again: (() => Promise<string>) | null
  /** Tells the person's browser how it ended, where it came back by itself. */
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
 * @throws CommandError where it is denied or no code comes; the signal's reason when it fires
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
      callback.answer(ending)
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
