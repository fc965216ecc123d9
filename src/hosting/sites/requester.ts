import type { AppConnection } from './app-connection.ts'
import type { Body } from './http1/body.ts'
import type { ResponseHead } from './http1/response-head.ts'
import type { OwnResponse } from './own-response.ts'
import type { ServeFiles } from './upstream.ts'

/**
 * The client's side of an exchange: a connection to the site's own port, or a request of the main port. Bytes that it is
 * given are not changed later, unless `shared` says so.
 */
export interface Requester {
  readonly method: string
  readonly hasBody: boolean
  /** Whether the request may be sent once more. */
  readonly isRepeatable: boolean
  /** Whether the request has arrived whole. */
  readonly isComplete: boolean
  /** Whether the client is gone. */
  readonly isGone: boolean
  /** Whether the response's content is wanted without its chunks. */
  readonly unchunks: boolean
  /** How the connection becomes a tunnel; null if the request asks for none. */
  readonly tunnel: Tunnel | null
  /** Sends an app the request's head, and as much of its body as has arrived with it. */
  sendTo(app: AppConnection): void
  /** The exchange may have become full, or have room again: pauses or resumes reading. */
  adjust(): void
  /** Receives a response before the response (RFC 9110, section 15.2). */
  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void
  /**
   * Receives the response's head, and as much of its body as came with it.
   *
   * @param end where the head ends, and the body begins
   * @returns whether more is accepted; `Exchange.drained` says later that it is
   */
  respond(bytes: Buffer, start: number, end: number, bodyEnd: number, head: ResponseHead, body: Body): boolean
  /** Receives more of the response's body. @returns as `respond` does */
  respondBody(bytes: Buffer, from: number, to: number, body: Body): boolean
  /** Receives a whole response of berth's own. */
  respondOwn(response: OwnResponse): void
  /** Responds with a file, then calls `Exchange.served` or `Exchange.serveFailed`. */
  serve(serve: ServeFiles): void
  /** The response is whole. */
  finish(): void
  /** The response cannot be completed. @param visibly the client would take a plain end for the whole */
  cutOff(visibly: boolean): void
}

/** A connection that a request turns into a tunnel, for a WebSocket. */
export interface Tunnel {
  /**
   * Receives the head of the app's 101 response; whatever is sent from then on belongs to the tunnel.
   *
   * @returns what the client has sent ahead, or null
   */
  begin(bytes: Buffer, start: number, head: ResponseHead): Buffer | null
  /** Receives bytes. @returns as `Requester.respond` does */
  write(bytes: Buffer, from: number, to: number): boolean
}
