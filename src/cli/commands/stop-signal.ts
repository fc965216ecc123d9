/** The signals that end the service. */
export interface StopSignal {
  readonly received: Promise<void>
  /** Is called when a second one ends the process on the spot. */
  onForcedExit: () => void
  /** Lets the end of the terminal count as well. */
  handleHangup(): void
}

/** Listens for SIGINT and SIGTERM. The second signal ends the process on the spot. */
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
