const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/**
 * Runs a function until it ends or Ctrl-C, SIGTERM or SIGHUP aborts its signal. A second one ends this process at once.
 *
 * @returns its exit code, or 128+n after signal n
 */
export async function untilInterrupted(run: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController()
  let interrupted: number | undefined
  const listeners = Object.entries(SIGNALS).map(([name, code]) => {
    const listener = () => {
      if (interrupted !== undefined) process.exit(interrupted)
      interrupted = code
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

/** The signal that ends the service. */
export interface StopSignal {
  readonly received: Promise<void>
  /** Called before a second signal exits the process. */
  onForcedExit: () => void
  /** Also ends the service on SIGHUP, when the terminal closes. */
  handleHangup(): void
}

/** Listens for SIGINT and SIGTERM. A second signal exits the process at once. */
export function listenForStopSignal(): StopSignal {
  const { promise: received, resolve } = Promise.withResolvers<void>()
  let given = false
  const signal: StopSignal = {
    received,
    onForcedExit: () => {},
    handleHangup: () => void process.on('SIGHUP', onSignal),
  }
  const onSignal = () => {
    if (given) {
      signal.onForcedExit()
      process.exit(0)
    }
    given = true
    resolve()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return signal
}
