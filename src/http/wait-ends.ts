import { BerthError } from '../errors.ts'

/** What ends a wait from outside. */
export interface WaitEnds {
  readonly signal: AbortSignal
  /** Calls its argument if the caller's credential changes or ends, until the returned function is called. */
  readonly whileValid: (ended: () => void) => () => void
}

/** Returns the error of a request whose credential was ended while it waited. */
export const endedCredential = (): BerthError =>
  new BerthError(
    'missing_or_invalid_api_key',
    'The credential of this request was ended, or its scope was changed, while it waited.',
  )
