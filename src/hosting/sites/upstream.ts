/** A request for a file of a site. Not a `Request`: to make one, and its headers, takes longer than to answer it. */
export interface FileRequest {
  readonly method: string
  /** Path and query as they were sent, encoded. */
  readonly target: string
  /** The value of a header, several joined with commas; null where there is none. @param name in lower case */
  header(name: string): string | null
}

/** Its answer. */
export interface FileResponse {
  readonly status: number
  /** By their names in lower case; `content-length` too where the length is known. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | ReadableStream<Uint8Array> | null
}

/** Answers a request for a file of a site; anything but GET and HEAD is its to refuse. */
export type ServeFiles = (request: FileRequest) => Promise<FileResponse>

/** Where an app of this machine listens: programs that bind "localhost" may have chosen either. */
export type LoopbackHost = '127.0.0.1' | '::1'

/** Where the requests of a site go at the moment. */
export type Upstream =
  /** An app that listens on a loopback address, 127.0.0.1 by default. */
  | { readonly kind: 'app'; readonly port: number; readonly host?: LoopbackHost }
  /** Files, answered by berth itself. */
  | { readonly kind: 'files'; readonly serve: ServeFiles }
  /** An app that starts: callers wait, within limits. */
  | { readonly kind: 'starting' }
  /** Nothing for now: 503 at once, with the reason for a person. */
  | { readonly kind: 'down'; readonly reason: string }

/** How a site is opened. */
export interface SiteOptions {
  /** The port that is its own for life. */
  port: number
  /** The first label of its host name on the main port, `SLUG.localhost`; null for none. */
  slug: string | null
  /** Called when a request, a WebSocket or a stream begins; what it returns when that is over. */
  onUse: () => () => void
}

/** A place under a port of its own, whatever stands behind it. */
export interface Site {
  readonly port: number
  /** `http://127.0.0.1:PORT/`. */
  readonly url: string
  /**
   * Sends requests there from now on; those that wait go there too. Requests under way end where they
   * began.
   */
  setUpstream(upstream: Upstream): void
  /** Resolves when no request is under way any more at an app's port that the site pointed to before. */
  drained(port: number): Promise<void>
  /** Listens no more; what is under way is cut off. */
  close(): Promise<void>
}

/** Sites under ports of their own. */
export interface SiteHost {
  /** A port of the range that is free now and not taken. @throws GatewayError where there is none */
  reserve(isTaken: (port: number) => boolean): Promise<number>
  /**
   * Opens a site: it listens when this resolves, or as soon as another program lets go of its port,
   * which is logged. Points to `starting` at first.
   */
  open(options: SiteOptions): Promise<Site>
}

/** No port is free; the message names the remedy. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
}
