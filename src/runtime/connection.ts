/** A TCP connection to this process. */
export interface Connection {
  /** The peer's IPv4 or IPv6 address. */
  readonly remoteAddress: string
  readonly remotePort: number
  /** The port of this process. */
  readonly localPort: number
}
