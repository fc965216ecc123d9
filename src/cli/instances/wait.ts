import { fieldsOf } from '../../runtime/is-object.ts'
import { CommandError } from '../errors.ts'
import { findBaseUrl, type InstanceOptions } from '../find-instance.ts'
import type { ProcessContext } from '../process-context.ts'

/** Milliseconds between attempts. */
const POLL_INTERVAL_MS = 25

/**
 * Waits until an instance is ready, recovery and fixtures included. It may not have been started yet.
 *
 * @returns its address, without a trailing slash
 * @throws CommandError if that takes longer than `timeoutMs`
 */
export async function waitUntilReady(
  options: InstanceOptions,
  context: ProcessContext,
  timeoutMs: number,
): Promise<string> {
  const deadline = performance.now() + timeoutMs
  let state = ''
  for (;;) {
    const { baseUrl, directory } = findBaseUrl(options, context)
    if (baseUrl === undefined) state = `no berth runs on ${directory}`
    else {
      const response = await probe(baseUrl, deadline)
      if (response === 'ready') return baseUrl
      // An attempt cut off by the time limit is less informative than the one before it.
      if (response !== 'cut off' || state === '') state = DESCRIPTIONS[response](baseUrl)
    }
    if (performance.now() + POLL_INTERVAL_MS > deadline) {
      throw new CommandError(
        `Not ready within ${timeoutMs / 1_000} s: ${state}. Give it longer with --timeout, or see that it was started.`,
      )
    }
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}

/** Describes the result of an attempt. */
const DESCRIPTIONS = {
  'cut off': (baseUrl: string) => `${baseUrl} does not answer`,
  nothing: (baseUrl: string) => `nothing answers at ${baseUrl}`,
  'no berth': (baseUrl: string) => `the program at ${baseUrl} is not berth`,
  starting: (baseUrl: string) => `${baseUrl} is still starting`,
} as const

/** Asks an address whether it is a berth that is ready. */
async function probe(baseUrl: string, deadline: number): Promise<keyof typeof DESCRIPTIONS | 'ready'> {
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now())))
  let response: Response
  try {
    response = await fetch(`${baseUrl}/_berth/ready`, { signal, redirect: 'manual' })
  } catch {
    return signal.aborted ? 'cut off' : 'nothing'
  }
  const { ready } = fieldsOf(await response.json().catch(() => null))
  if (signal.aborted) return 'cut off'
  if (response.status === 200 && ready === true) return 'ready'
  return ready === false ? 'starting' : 'no berth'
}
