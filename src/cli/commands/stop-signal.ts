/** The signals that end the service. */
export interface StopSignal {
  readonly arrived: Promise<void>
  /** Is called when a second one ends the process on the spot. */
  lastWords: () => void
  /** Lets the end of the terminal count as well. */
  heedHangUp(): void
}

/** Listens for SIGINT and SIGTERM. The second signal ends the process on the spot. */
export function stopSignal(): StopSignal {
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  let given = false
  const signal: StopSignal = {
    arrived,
    lastWords: () => {},
    heedHangUp: () => void process.on('SIGHUP', onSignal),
  }
  const onSignal = () => {
    if (given) {
      signal.lastWords()
      process.exit(0)
    }
    given = true
    resolve()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return signal
}
