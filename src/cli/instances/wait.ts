import { CommandError } from '../errors.ts'
import { type ConnectionOptions, findBaseUrl } from '../instance.ts'
import type { Terminal } from '../terminal.ts'

/** Milliseconds between two looks. */
const LOOK_MS = 25

/**
 * Waits until an instance is ready, recovery and fixtures included. It may still have to be started.
 *
 * @returns its address, without a trailing slash
 * @throws CommandError where that takes longer than `timeoutMs`
 */
export async function waitUntilReady(
  options: ConnectionOptions,
  terminal: Terminal,
  timeoutMs: number,
): Promise<string> {
  const deadline = performance.now() + timeoutMs
  let state = ''
  for (;;) {
    const { baseUrl, directory } = findBaseUrl(options, terminal)
    if (baseUrl === undefined) state = `no berth runs on ${directory}`
    else {
      const response = await ask(baseUrl, deadline)
      if (response === 'ready') return baseUrl
      // An attempt that the time limit cuts off says less than the one before it.
      if (response !== 'cut off' || state === '') state = STATES[response](baseUrl)
    }
    if (performance.now() + LOOK_MS > deadline) {
      throw new CommandError(
        `Not ready within ${timeoutMs / 1_000} s: ${state}. Give it longer with --timeout, or see that it was started.`,
      )
    }
    await Bun.sleep(LOOK_MS)
  }
}

/** Returns a sentence about what an attempt has found. */
const STATES = {
  'cut off': (baseUrl: string) => `${baseUrl} does not answer`,
  nothing: (baseUrl: string) => `nothing answers at ${baseUrl}`,
  'no berth': (baseUrl: string) => `what answers at ${baseUrl} is no berth`,
  starting: (baseUrl: string) => `${baseUrl} is still starting`,
} as const

/** What is at an address. */
async function ask(baseUrl: string, deadline: number): Promise<keyof typeof STATES | 'ready'> {
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now())))
  let response: Response
  try {
    response = await fetch(`${baseUrl}/_berth/ready`, { signal, redirect: 'manual' })
  } catch {
    return signal.aborted ? 'cut off' : 'nothing'
  }
  const body = (await response.json().catch(() => null)) as { ready?: unknown } | null
  if (signal.aborted) return 'cut off'
  if (response.status === 200 && body?.ready === true) return 'ready'
  return body?.ready === false ? 'starting' : 'no berth'
}
