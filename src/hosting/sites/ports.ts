import { closeSync, openSync } from 'node:fs'
import { otherLoopback } from '../../http/host.ts'
import { codeOf } from '../../runtime/error-info.ts'
import type { ClientConnection } from './client-connection.ts'

/** Listens on a port at one address. */
export type PortListener = Bun.TCPSocketListener<ClientConnection | null>

/**
 * Listens on a port for a site to come, and closes each connection.
 *
 * @returns the listeners, or why there are none
 */
export function holdPort(host: string, port: number): PortListener[] | ListenFailure {
  const listeners: PortListener[] = []
  const socket: Bun.SocketHandler<ClientConnection | null> = {
    open: (opened) => opened.terminate(),
    data() {},
  }
  for (const hostname of addressesOf(host)) {
    try {
      listeners.push(Bun.listen<ClientConnection | null>({ hostname, port, data: null, socket }))
    } catch (error) {
      const failure = listenFailure(error, hostname, port)
      // Without IPv6 there is no other loopback address.
      if (hostname !== host && failure.lacksAddress) continue
      for (const listener of listeners) listener.stop(true)
      return failure
    }
  }
  return listeners
}

/**
 * Returns an address, and for a loopback address the other one too: "localhost" may resolve to either, so both must
 * be the site's.
 */
export function addressesOf(host: string): string[] {
  const other = otherLoopback(host)
  return other === null ? [host] : [host, other]
}

/** Why a port cannot be listened on. */
export interface ListenFailure {
  /** The system's code; null if it gave none. */
  readonly code: string | null
  /** Whether another program has the port. */
  readonly isTaken: boolean
  /** Whether the machine lacks the address, as ::1 without IPv6. */
  readonly lacksAddress: boolean
  /** Cause and, unless it is taken, remedy, for a person. */
  readonly reason: string
}

/** Returns why listening on a port failed. */
export function listenFailure(error: unknown, host: string, port: number): ListenFailure {
  const code = codeOf(error) ?? codeWithoutDescriptor()
  const isTaken = code === 'EADDRINUSE'
  const lacksAddress = code === null || code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'
  const reason = isTaken
    ? `Port ${port} is taken by another program.`
    : `Port ${port} cannot be opened: ${causeOf(code, host)}`
  return { code, isTaken, lacksAddress, reason }
}

function causeOf(code: string | null, host: string): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'berth may not listen there. Low ports need privileges (Linux: net.ipv4.ip_unprivileged_port_start); start berth with other ports: --project-ports FIRST-LAST.'
    case 'EADDRNOTAVAIL':
      return `this machine does not have the address ${host} (any more). Start berth with one that it has: --host ADDRESS.`
    case 'EMFILE':
      return 'berth has as many files and connections open as it may. Start it with a larger limit: ulimit -n.'
    case 'ENFILE':
      return 'this machine has as many files open as it may (Linux: fs.file-max). End other programs.'
    default:
      return `the system refuses it${code === null ? '' : ` (${code})`}.`
  }
}

/** Returns EMFILE or ENFILE if no descriptor is free: Bun then gives no code. */
function codeWithoutDescriptor(): string | null {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return null
  } catch (error) {
    return codeOf(error) ?? null
  }
}

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
