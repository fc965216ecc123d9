import type { AppConnection, CutOff } from './app-connection.ts'
import type { Body } from './http1/body.ts'
import type { ResponseHead } from './http1/response-head.ts'
import type { OwnResponse } from './own-response.ts'
import type { ServeFiles } from './upstream.ts'

/**
 * The client's side of an exchange: a connection to the site's own port, or a request of the main port. Callers must
 * not change the bytes that they pass, unless `mustCopy` is set.
 */
export interface Requester {
  readonly method: string
  readonly hasBody: boolean
  /** Whether the request may be sent again. */
  readonly isRepeatable: boolean
  /**
   * Whether the request can be sent again over a new connection if the app has not read it: it stays in memory until
   * its end, is at most 64 KiB long, and further requests of the client may follow.
   */
  readonly canResend: boolean
  /** Whether the request has arrived whole. */
  readonly isComplete: boolean
  /** Whether the client has disconnected. */
  readonly isDisconnected: boolean
  /** Whether the response's content is sent without its chunks. */
  readonly unchunks: boolean
  /** Turns the connection into a tunnel; null if the request asks for none. */
  readonly tunnel: Tunnel | null
  /** Sends the request's head to an app, and the part of its body that has arrived. */
  sendTo(app: AppConnection): void
  /** Pauses or resumes reading after `Exchange.full` may have changed. */
  adjustReading(): void
  /** Receives an interim (1xx) response (RFC 9110, section 15.2). */
  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void
  /**
   * Receives the response's head, and the part of its body that arrived with it.
   *
   * @param end end of the head and start of the body
   * @returns whether more is accepted; if not, call again after `Exchange.drained`
   */
  respond(bytes: Buffer, start: number, end: number, bodyEnd: number, head: ResponseHead, body: Body): boolean
  /**
   * Receives more of the response's body.
   *
   * @returns see `respond`
   */
  respondBody(bytes: Buffer, from: number, to: number, body: Body): boolean
  /** Receives a complete response of berth's own. */
  respondOwn(response: OwnResponse): void
  /** Responds with a file, then calls `Exchange.served` or `Exchange.serveFailed`. */
  serve(serve: ServeFiles): void
  /** Ends the response, which is complete. */
  finish(): void
  /** Ends the response, which cannot be completed. */
  cutOff(how: CutOff): void
}

/** A connection that a request turns into a tunnel, for a WebSocket. */
export interface Tunnel {
  /**
   * Receives the head of the app's 101 response. All bytes after it belong to the tunnel.
   *
   * @returns the bytes that the client has sent ahead, or null
   */
  beginTunnel(bytes: Buffer, start: number, head: ResponseHead): Buffer | null
  /**
   * Receives bytes.
   *
   * @returns see `Requester.respond`
   */
  write(bytes: Buffer, from: number, to: number): boolean
}
