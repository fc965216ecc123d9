import { codeOf } from '../../runtime/error-info.ts'

/**
 * Tells other berths of this machine which ports the projects of this one have, so that they choose others: nothing
 * listens on the port of a private project. A claim is a Unix socket without a file (unix(7), "abstract"), whose name
 * only one process can have. Its network namespace is that of the ports.
 */
export class PortClaims {
  readonly #claims = new Map<number, Bun.UnixSocketListener<undefined>>()

  /** Claims a port. Returns false if another berth has claimed it. */
  take(port: number): boolean {
    if (this.#claims.has(port)) return true
    try {
      const claim = Bun.listen({
        unix: `\0berth-project-port-${port}`,
        socket: { open: (socket) => void socket.terminate(), data() {} },
      })
      this.#claims.set(port, claim)
      return true
    } catch (error) {
      // A system without such sockets has no claims.
      return codeOf(error) !== 'EADDRINUSE'
    }
  }

  /** Gives up the claims of other ports. */
  keepOnly(isKept: (port: number) => boolean): void {
    for (const [port, claim] of this.#claims) {
      if (isKept(port)) continue
      claim.stop(true)
      this.#claims.delete(port)
    }
  }
}
