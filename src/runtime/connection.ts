import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemRandom } from './random.ts'

/** A TCP connection to this process. */
export interface Connection {
  /** The peer's IPv4 or IPv6 address. */
  readonly remoteAddress: string
  readonly remotePort: number
  /** The loopback address of this process that the peer has connected to; null if it is another one, or unknown. */
  readonly localLoopback: '127.0.0.1' | '::1' | null
  /** The port of this process. */
  readonly localPort: number
}

/**
 * Makes up a unix socket (unix(7)) at which this process takes connections that it passes on for servers to a port of its
 * own. Nobody else sees where those come from. On Linux it is an abstract one, which goes with the process; every user of the
 * machine can take its name, so nobody can tell it beforehand.
 */
export function newSocketForServers(platform: NodeJS.Platform = process.platform): string {
  const name = `berth-${process.pid}-${Buffer.from(systemRandom.bytes(16)).toString('hex')}`
  return platform === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`)
}
