/**
 * A package that cannot be given. The message is for the person who reads the install's log: npm and pnpm print it, Bun
 * the status alone.
 */
export class PackageError extends Error {
  override readonly name = 'PackageError'

  /**
   * @param status of the answer. Clients try a 5xx again, npm for more than a minute; what a mirror cannot get, which
   *   has tried it again itself, is therefore 424
   * @param unreachable whether the registry gave no answer, so that what is known from before may stand in for it
   */
  constructor(
    message: string,
    readonly status: 404 | 424,
    readonly unreachable = false,
  ) {
    super(message)
  }
}
