import { untilInterrupted } from './interrupt.ts'
import type { OutputStream } from './process-context.ts'

/** Milliseconds between polls of something that changes on the instance. */
export const POLL_INTERVAL_MS = 150

/**
 * Runs a function that follows work of the instance. A signal ends the following, not the work; `hint` then says how
 * to continue.
 *
 * @returns the function's exit code, or 128+n after signal n
 */
export async function followWork(
  stderr: OutputStream,
  hint: string,
  run: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const code = await untilInterrupted(run)
  if (code > 128) await stderr.write(`\nberth: ${hint}`)
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
