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
