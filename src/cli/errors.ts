/** Code of errors because the instance cannot be reached or the connection was lost. */
export const NO_CONNECTION = 'no_connection'

/**
 * Error: a command failed. It is printed as one sentence with cause and remedy, without a stack. The process exits
 * with `exitCode`.
 */
export class CommandError extends Error {
  override readonly name = 'CommandError'

  constructor(
    message: string,
    readonly exitCode = 1,
    /** The API's error code, if the API reported the failure. */
    readonly code?: string,
  ) {
    super(message)
  }
}

/** Error: there is nothing of a kind yet, so none can be meant without a name. */
export class NothingYetError extends CommandError {}
