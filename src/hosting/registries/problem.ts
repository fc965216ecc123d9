/**
 * Error: a package cannot be delivered. Its message is for the reader of the install's log. npm and pnpm print it;
 * Bun prints only the status.
 */
export class PackageError extends Error {
  override readonly name = 'PackageError'

  /**
   * @param status of the response. Clients retry a 5xx, npm for more than a minute. The mirror has already retried
   * itself, so it responds with 424.
   * @param unreachable whether the registry did not respond, so a cached document may be used instead
   */
  constructor(
    message: string,
    readonly status: 404 | 424,
    readonly unreachable = false,
  ) {
    super(message)
  }
}
