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
  for (;;) {
    const { baseUrl, folder } = findBaseUrl(options, terminal)
    const state = baseUrl === undefined ? `no berth runs on ${folder}` : await ask(baseUrl, deadline)
    if (baseUrl !== undefined && state === null) return baseUrl
    if (performance.now() + LOOK_MS > deadline) {
      throw new CommandError(
        `Not ready within ${timeoutMs / 1_000} s: ${state}. Give it longer with --timeout, or see that it was started.`,
      )
    }
    await Bun.sleep(LOOK_MS)
  }
}

/** Null where it is ready, else what is known. */
async function ask(baseUrl: string, deadline: number): Promise<string | null> {
  const left = Math.max(1, Math.ceil(deadline - performance.now()))
  try {
    const answer = await fetch(`${baseUrl}/_berth/ready`, {
      signal: AbortSignal.timeout(left),
      redirect: 'manual',
    })
    const { ready } = (await answer.json()) as { ready?: unknown }
    if (answer.status === 200 && ready === true) return null
    return ready === false ? `${baseUrl} is still starting` : `what answers at ${baseUrl} is no berth`
  } catch {
    return `nothing answers at ${baseUrl}`
  }
}
