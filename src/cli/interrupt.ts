const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/**
 * Runs something that Ctrl-C, SIGTERM and SIGHUP end in order, through the signal that it is given.
 *
 * @returns its exit code, or 128+n where signal n ended it
 */
export async function untilInterrupted(run: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController()
  let interrupted: number | undefined
  const listeners = Object.entries(SIGNALS).map(([name, code]) => {
    const listener = () => {
      interrupted ??= code
      controller.abort()
    }
    process.on(name, listener)
    return () => process.off(name, listener)
  })
  try {
    return await run(controller.signal)
  } catch (error) {
    if (interrupted === undefined) throw error
  } finally {
    for (const remove of listeners) remove()
  }
  return interrupted
}
