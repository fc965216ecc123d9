import { hostname } from 'node:os'
import { challengeOf } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import { canOpenBrowser, openInBrowser } from '../browser.ts'
import { CommandError } from '../errors.ts'
import { isInteractive, type ProcessContext } from '../process-context.ts'
import { promptLine } from '../prompt.ts'
import { listenForCallback, type ResultPage } from './callback.ts'

/** A person's approval of a sign-in. */
export interface Approval {
  attempt: PkceAttempt
  code: string
  /** Asks for the code again; null if it was not typed. */
  retypeCode: (() => Promise<string>) | null
  /** Shows the result in the person's browser, if it returned to this machine. */
  showResult: (ending: ResultPage) => Promise<void>
}

/** A sign-in to approve. */
interface ApprovalOptions {
  baseUrl: string
  label: string | undefined
  /** Whether to open a browser. */
  browser: boolean
}

/**
 * Asks a person to approve in a browser: in one that opens here and returns to this machine, else in any other, which
 * shows a code to type in.
 *
 * @throws CommandError if it is denied or there is no code; the signal's reason if it aborts
 */
export async function awaitApproval(
  { baseUrl, label, browser }: ApprovalOptions,
  context: ProcessContext,
  signal: AbortSignal,
): Promise<Approval> {
  const request = { baseUrl, attempt: newAttempt(), host: hostname(), label, port: null }
  const approved = browser && canOpenBrowser(context) ? await byBrowser(request, context, signal) : null
  return approved ?? byCode(request, context, signal)
}

/** Returns null if the browser could not be opened. */
async function byBrowser(
  request: ApprovalRequest,
  context: ProcessContext,
  signal: AbortSignal,
): Promise<Approval | null> {
  const { attempt } = request
  const listener = listenForCallback(attempt.state)
  try {
    const url = pageUrl({ ...request, port: listener.port })
    await context.stderr.write(
      `Approve in the browser that opens. Where none does, open this address on this machine:\n\n  ${url}\n\n`,
    )
    // The program may run as long as the browser does.
    const failed = openInBrowser(url, context).then((opened) => (opened ? never() : null))
    const callback = await Promise.race([listener.arrived, failed, aborted(signal)])
    if (callback === null) {
      await context.stderr.write('The browser could not be opened.\n')
      await listener.stop()
      return null
    }
    const showResult = (ending: ResultPage): Promise<void> => {
      callback.respond(ending)
      return listener.stop()
    }
    if (callback.code !== null) return { attempt, code: callback.code, retypeCode: null, showResult }
    await showResult({ title: 'Denied', text: 'The terminal gets no key. You can close this page.' })
    throw new CommandError('It was denied in the browser; nothing was changed.')
  } catch (error) {
    await listener.stop()
    throw error
  }
}

async function byCode(
  request: ApprovalRequest,
  context: ProcessContext,
  signal: AbortSignal,
): Promise<Approval> {
  await context.stderr.write(
    `Open this address in a browser, approve, and type in the code that it shows:\n\n  ${pageUrl(request)}\n\n`,
  )
  const read = (): Promise<string> => readCode(context, signal)
  return {
    attempt: request.attempt,
    code: await read(),
    retypeCode: isInteractive(context) ? read : null,
    showResult: async () => {},
  }
}

const never = (): Promise<never> => new Promise(() => {})

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    if (signal.aborted) reject(signal.reason)
  })

/** The secrets of one sign-in (RFC 7636). */
interface PkceAttempt {
  /** Sent only to the instance, with the code (RFC 7636, section 4.1). */
  readonly verifier: string
  /** S256 of the verifier, sent through the browser. */
  readonly challenge: string
  /** Identifies the browser's callback. */
  readonly state: string
}

/** Creates one from the system's randomness. */
function newAttempt(): PkceAttempt {
  const verifier = newSecret(systemRandom)
  return { verifier, challenge: challengeOf(verifier), state: newSecret(systemRandom) }
}

/** A request for approval, as the page shows it. */
interface ApprovalRequest {
  baseUrl: string
  attempt: PkceAttempt
  /** Name of this machine. */
  host: string
  label: string | undefined
  /** Port of the callback; null if the code is typed in. */
  port: number | null
}

/** Returns the address of the approval page. It contains no secret. */
function pageUrl({ baseUrl, attempt, host, label, port }: ApprovalRequest): string {
  const query = new URLSearchParams({
    challenge: attempt.challenge,
    ...(port === null ? {} : { state: attempt.state, redirect_port: String(port) }),
    host,
    ...(label === undefined ? {} : { label }),
  })
  return `${baseUrl}/cli/authorize?${query}`
}

/** Largest length of a line with a code, in bytes. */
const LINE_BYTES = 1_000

/**
 * Reads the code that a person types, or the first line of standard input if that is not a terminal.
 *
 * @throws CommandError if there is none; the signal's reason if it aborts
 */
async function readCode(context: ProcessContext, signal: AbortSignal): Promise<string> {
  const line = isInteractive(context) ? await typedLine(signal) : await firstLine(signal)
  signal.throwIfAborted()
  const code = line?.trim() ?? ''
  if (code !== '') return code
  throw new CommandError('No code was given; nothing was changed. Run "berth login" again.')
}

/** Returns the first line that is not empty: a person who waits for the prompt may press Enter. */
async function typedLine(signal: AbortSignal): Promise<string | null> {
  for (;;) {
    // Input before the prompt counts: the address was printed earlier, and a code may be pasted at once.
    const lines = await promptLine('Code: ', signal, 'counts')
    const line = lines === null ? null : lines.split('\n').find((text) => text.trim() !== '')
    if (line !== undefined) return line
  }
}

/** Returns the first line without waiting for the end of standard input, which the writer may keep open. */
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
