/** The code of errors where there is no connection, or none any more. */
export const NO_CONNECTION = 'no_connection'

/**
 * A command that cannot do what was asked: printed as one sentence with the cause and the remedy,
 * without a stack; the process exits with `exitCode`.
 */
export class CommandError extends Error {
  override readonly name = 'CommandError'

  constructor(
    message: string,
    readonly exitCode = 1,
    /** What the API calls the failure, where it is one of the API's. */
    readonly code?: string,
  ) {
    super(message)
  }
}
