import { untilInterrupted } from './interrupt.ts'
import type { OutputStream } from './process-context.ts'

/** Milliseconds between polls of something that changes on the instance. */
export const POLL_INTERVAL_MS = 150

/**
 * Runs a function that follows work of the instance. A signal ends the following, not the work; `hint` then says how
 * to continue, or is empty if nothing goes on.
 *
 * @returns the function's exit code, or 128+n after signal n
 */
export async function followWork(
  stderr: OutputStream,
  hint: string | (() => string),
  run: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const code = await untilInterrupted(run)
  const said = code > 128 ? (typeof hint === 'string' ? hint : hint()) : ''
  if (said !== '') await stderr.write(`\nberth: ${said}`)
  return code
}

/**
 * Polls a resource until it is final.
 *
 * @param hint asks once more, without delay, when it resolves
 * @throws the signal's reason if it aborts
 */
export async function pollUntil<Resource>(
  read: () => Promise<Resource>,
  isFinal: (resource: Resource) => boolean,
  signal: AbortSignal,
  hint: Promise<void> | null = null,
): Promise<Resource> {
  let soon = hint
  for (;;) {
    const resource = await read()
    if (isFinal(resource)) return resource
    await Promise.race([
      Bun.sleep(POLL_INTERVAL_MS),
      ...(soon === null
        ? []
        : [
            soon.then(() => {
              soon = null
            }),
          ]),
    ])
    signal.throwIfAborted()
  }
}
