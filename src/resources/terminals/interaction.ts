import type { InputModes } from '../../compute/emulators/emulators.ts'
import { BerthError, badRequest, notFound } from '../../errors.ts'
import { endedCredential, type WaitEnds } from '../../http/wait-ends.ts'
import { encodeInput, KEY_NAMES, type TypedInput } from './keys.ts'
import type { ScreenQuery, TerminalInput, TerminalScreen } from './model.ts'
import type { LiveTerminal, TerminalObserver } from './terminal.ts'

/** Milliseconds without output after which a request that has typed responds, if it names nothing to wait for. */
const TYPED_QUIET_MS = 250

/** Milliseconds after which a wait ends, if the request names none. */
const TIMEOUT_MS = 10_000

/** Most requests that wait for one terminal at a time. Each pattern is looked for in all output. @bound client */
const MAX_WAITS = 10

/** Milliseconds after its time for which a request waits until what was printed before is drawn. */
const DRAWN_MS = 250

/** Milliseconds between looks at a program that is held up. */
const HELD_UP_MS = 20

/** How a wait has ended. */
type Ending = Pick<TerminalScreen, 'outcome' | 'match'>

/**
 * Waits for what a request asks for, and returns the screen.
 *
 * @throws BerthError 400, 401, 403, 404
 */
export const readTerminal = (
  terminal: LiveTerminal,
  query: ScreenQuery,
  ends: WaitEnds,
): Promise<TerminalScreen> => interact(terminal, query, null, ends)

/**
 * Types, waits for what a request asks for, and returns the screen.
 *
 * @throws BerthError 400, 401, 403, 404
 */
export function typeOnTerminal(
  terminal: LiveTerminal,
  request: TerminalInput,
  ends: WaitEnds,
): Promise<TerminalScreen> {
  const { text = '', keys = [], paste = false } = request
  const quietMs = request.quiet_ms ?? (request.until === undefined ? TYPED_QUIET_MS : undefined)
  const wait = { ...request, ...(quietMs === undefined ? {} : { quiet_ms: quietMs }) }
  return interact(terminal, wait, { text, keys, isPaste: paste }, ends)
}

/** Types the input, if there is one, and returns the screen when what the query waits for has come, or its time is over. */
async function interact(
  terminal: LiveTerminal,
  query: ScreenQuery,
  input: TypedInput | null,
  ends: WaitEnds,
): Promise<TerminalScreen> {
  if (input !== null) requireLive(terminal)
  const { promise, resolve, reject } = Promise.withResolvers<Ending>()
  // A wait may end before it is waited for.
  promise.catch(() => {})
  const gone = (): void => reject(goneError(terminal))
  const left = (): void => reject(new BerthError('service_unavailable', 'The client waits no longer.'))
  const invalid = (): void => reject(endedCredential())
  const exited = (): void => resolve({ outcome: 'exited', match: null })
  const cleanups = [observe(terminal, { exited, gone })]
  try {
    ends.signal.addEventListener('abort', left)
    cleanups.push(() => ends.signal.removeEventListener('abort', left), ends.whileValid(invalid))
    // The time counts from here on, however long it takes to draw what was printed before.
    const timeoutMs = query.timeout_ms ?? TIMEOUT_MS
    const deadline = performance.now() + timeoutMs
    const timeout = setTimeout(() => resolve({ outcome: 'timeout', match: null }), timeoutMs)
    cleanups.push(() => clearTimeout(timeout))
    const pattern = query.until ?? null
    if (pattern !== null || input !== null) {
      const found = (match: string): void => resolve({ outcome: 'matched', match })
      const beginning = terminal.watch({ pattern, onlyNew: input !== null }, found)
      cleanups.push(() => void beginning.then(({ end }) => end()))
      const watch = await Promise.race([beginning, promise.then(() => null)])
      if (watch !== null && watch.refusal !== null) throw badRequest(`"until": ${watch.refusal}`)
      if (input !== null) type(terminal, input, watch?.modes ?? terminal.modes)
    }
    cleanups.push(endByQuiet(terminal, query, input !== null, resolve))
    if (terminal.hasEnded) exited()
    const ending = await promise
    const screen = await terminal.read(query.lines ?? 0, deadline + DRAWN_MS)
    if (screen === null) throw goneError(terminal)
    return { ...screen, ...ending }
  } finally {
    for (const cleanup of cleanups) cleanup()
  }
}

/** @throws BerthError 403 */
function observe(terminal: LiveTerminal, observer: TerminalObserver): () => void {
  if (terminal.observers < MAX_WAITS) return terminal.observe(observer)
  throw new BerthError(
    'plan_limit',
    `${MAX_WAITS} requests wait for this terminal already. Wait until one of them has its response.`,
  )
}

const goneError = ({ facts }: LiveTerminal): BerthError => notFound(`The terminal "${facts.id}"`)

/** @throws BerthError 400 */
function requireLive({ isLive, facts }: LiveTerminal): void {
  if (isLive) return
  throw badRequest(
    `The program of the terminal "${facts.id}" has ended, so it takes no more keys. Open another terminal.`,
  )
}

/** @throws BerthError 400, 403 */
function type(terminal: LiveTerminal, input: TypedInput, modes: InputModes): void {
  requireLive(terminal)
  const encoded = encodeInput(input, modes)
  if ('unknown' in encoded)
    throw badRequest(`"keys": there is no key ${JSON.stringify(encoded.unknown)}. There are: ${KEY_NAMES}.`)
  if (terminal.typeAll(encoded.bytes)) return
  throw new BerthError(
    'plan_limit',
    'More was typed than the program reads. Wait until it reads, or end it with the key ctrl-c.',
  )
}

/** Ends a wait when nothing is printed any more, or at once if the request waits for nothing. */
function endByQuiet(
  terminal: LiveTerminal,
  { until, quiet_ms: quietMs, timeout_ms: timeoutMs }: ScreenQuery,
  hasTyped: boolean,
  end: (ending: Ending) => void,
): () => void {
  if (until === undefined && quietMs === undefined && timeoutMs === undefined) {
    end({ outcome: 'none', match: null })
    return () => {}
  }
  if (quietMs === undefined) return () => {}
  const begun = performance.now()
  let quiet: Timer | undefined
  const look = (): void => {
    const since = Math.max(terminal.printedAt, hasTyped ? begun : 0)
    const left = since + quietMs - performance.now()
    // A program that is held up would print more.
    if (left <= 0 && !terminal.isHeldUp) end({ outcome: 'quiet', match: null })
    else quiet = setTimeout(look, Math.max(left, HELD_UP_MS))
  }
  look()
  return () => clearTimeout(quiet)
}
