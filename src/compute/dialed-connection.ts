/** A loopback address. A program that binds "localhost" may have chosen either. */
export type LoopbackHost = '127.0.0.1' | '::1'

/** A TCP port of the loopback interface that a server's programs see. */
export interface LoopbackAddress {
  readonly host: LoopbackHost
  readonly port: number
}

/** A connection that `Sandbox.dial` has opened. A `Bun.Socket` is one. */
export interface DialedConnection {
  /**
   * Writes the part of `bytes` that fits into the send buffer, which the caller may change afterwards.
   *
   * @returns the number of bytes written, or a negative number if the connection is gone
   */
  write(bytes: Uint8Array, offset?: number, length?: number): number
  /** Stops calls of `data`, so the peer has to wait. */
  pause(): void
  resume(): void
  /** Closes the connection after what was written. */
  end(): void
  /** Resets the connection. */
  terminate(): void
  /**
   * Begins to tell what is written from now on from what was written before, for `isUnread`.
   *
   * @returns whether that will be known; it never is without this function
   */
  watchReading?(): boolean
  /**
   * Returns whether it is certain that the peer has read nothing of what was written since `watchReading`. To be called
   * in `DialHandlers.closed`, once. It may take a second.
   */
  isUnread?(): Promise<boolean>
}

/** Receives the events of a connection that `Sandbox.dial` opens. Must not throw. */
export interface DialHandlers {
  /** Called once, first. */
  opened(connection: DialedConnection): void
  /** Receives bytes, which are the receiver's to keep. */
  data(chunk: Buffer): void
  /** Called when the send buffer, which was full, accepts bytes again. */
  drain(): void
  /** Called once, last, whichever side has closed it. @param failed whether it was reset or broke */
  closed(failed: boolean): void
}

/** Nothing listens on a port inside a server. */
export class DialRefused extends Error {
  override readonly name = 'DialRefused'

  constructor(host: LoopbackHost, port: number, options?: ErrorOptions) {
    super(`Nothing listens on ${host}, port ${port}, of the server.`, options)
  }
}
