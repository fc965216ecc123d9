import type { Dialer, LoopbackHost } from '../../compute/sandbox.ts'

/**
 * A request for a file of a site. Not a `Request`, which with its headers takes longer to construct than the
 * response.
 */
export interface FileRequest {
  readonly method: string
  /** Path and query as they were sent, encoded. */
  readonly target: string
  /**
   * Returns the value of a header, several joined with commas, or null.
   *
   * @param name in lower case
   */
  header(name: string): string | null
}

/** The response to a `FileRequest`. */
export interface FileResponse {
  readonly status: number
  /** Values by name in lower case, with `content-length` if the length is known. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | ReadableStream<Uint8Array> | null
}

/** Responds to a request for a file of a site. Refuses methods other than GET and HEAD. */
export type ServeFiles = (request: FileRequest) => Promise<FileResponse>

/** A port inside a server. Ports of two servers differ also if their numbers are the same. */
export interface ServerPort {
  readonly server: Dialer
  readonly port: number
}

/** The target of a site's requests. */
export type Upstream =
  /** An app that listens on a loopback address of its server, 127.0.0.1 by default. */
  | ({ readonly kind: 'app'; readonly host?: LoopbackHost } & ServerPort)
  /** Files that berth serves. */
  | { readonly kind: 'files'; readonly serve: ServeFiles }
  /**
   * An app that starts, after a crash if `hasCrashed`. Requests wait, within limits; then `late` responds, if it is given.
   */
  | { readonly kind: 'starting'; readonly late?: ServeFiles; readonly hasCrashed?: boolean }
  /** No target. Requests get 503 at once, with the reason for a person. */
  | { readonly kind: 'down'; readonly reason: string }

/** Options of a site. */
export interface SiteOptions {
  /** The site's port, which never changes. */
  port: number
  /** The first label of its host name on the main port, `SLUG.localhost`; null for none. */
  slug: string | null
  /**
   * Called when a request, a WebSocket or a stream begins while no other is under way. The returned function is called
   * when none is under way any more.
   */
  onUse: () => () => void
  /**
   * Returns how the app has crashed, and the remedy, for a person: `it ended with exit code 1. Its log tells why.` Null if
   * it has not, or responds again.
   */
  crash?: () => string | null
  /** Called with true when another program turns out to have the port, then with false when the site has it. */
  onPortTaken?: (isTaken: boolean) => void
  /** Called with cause and remedy when the port cannot be opened for another reason. The site tries again. */
  onListenFailure?: (reason: string) => void
}

/** A site with its own port, independent of its upstream. */
export interface Site {
  readonly port: number
  /** `http://127.0.0.1:PORT/`. */
  readonly url: string
  /** Sends new and waiting requests to this upstream. Requests under way end at the earlier one. */
  setUpstream(upstream: Upstream): void
  /** Resolves when no request is under way at an app's port that was the upstream before. */
  drained(port: ServerPort): Promise<void>
  /** Stops listening and resets the requests under way. */
  close(): Promise<void>
}

/** A port that is held for a site. No other program can listen there. */
export interface ReservedPort {
  readonly port: number
  /** Frees the port. Does nothing if a site was opened there. */
  release(): void
}

/** Opens sites on ports of their own. */
export interface SiteHost {
  /**
   * Reserves a port of the range that is free and not taken.
   *
   * @throws GatewayError if there is none
   */
  reserve(isTaken: (port: number) => boolean): Promise<ReservedPort>
  /**
   * Opens a site with the upstream `starting`. It listens when this resolves. If another program has the port, it
   * logs that and listens as soon as the port is free. A reserved port is never free in between.
   */
  open(options: SiteOptions): Promise<Site>
}

/** Error: no port is free. The message names the remedy. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
}

/**
 * Returns the URL under which this machine reaches a port.
 *
 * @param host address that berth and its sites listen on; for the wildcard address the URL has the loopback one
 */
export function siteUrl(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}/`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/`
}
