import type { ErrorBody, ErrorCode } from '../../errors.ts'
import { type Html, html } from '../../http/pages/html.ts'
import { standaloneDocument } from '../../http/pages/page.ts'
import type { Refusal } from './http1/head.ts'

/** A response of berth's own, in place of the site's. */
export interface OwnResponse {
  readonly status: 400 | 403 | 404 | 405 | 408 | 416 | 431 | 500 | 501 | 502 | 503
  readonly code: ErrorCode
  readonly message: string
  /** Seconds after which the client may try again. */
  readonly retryAfter?: number
  /** Seconds after which a browser reloads the page. */
  readonly reload?: number
}

/** The reasons of the statuses of responses that berth makes itself. */
export const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  206: 'Partial Content',
  301: 'Moved Permanently',
  302: 'Found',
  304: 'Not Modified',
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  412: 'Precondition Failed',
  416: 'Range Not Satisfiable',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
}

/** Type of berth's own pages. */
export const HTML = 'text/html; charset=utf-8'

/** What berth's own pages may load. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

/** Returns the response to a refused request. */
export const refusalResponse = ({ status, message }: Refusal): OwnResponse => ({
  status,
  code: status === 403 ? 'forbidden' : 'bad_request',
  message,
})

/**
 * Returns a 503 for a site without an upstream.
 *
 * @param reason for a person; null if an app has not started in time
 */
export const unavailable = (reason: string | null): OwnResponse =>
  reason === null
    ? {
        status: 503,
        code: 'service_unavailable',
        message: 'The app has not started in time. Its log tells why; try again in a moment.',
        retryAfter: 1,
        reload: 2,
      }
    : { status: 503, code: 'service_unavailable', message: reason, retryAfter: 10 }

/**
 * Returns a 503 for an app to which no connection could be opened in time.
 *
 * @param reason why, a sentence; null if it has not started in time
 */
export function unreachable(reason: string | null): OwnResponse {
  const starting = unavailable(null)
  if (reason === null) return starting
  return {
    ...starting,
    message: `No connection to the app can be opened. ${reason} The app's log may tell why; try again in a moment.`,
  }
}

/**
 * Returns a 502 for a response that cannot be passed on.
 *
 * @param fault its defect
 */
export const badGateway = (fault: string): OwnResponse => ({
  status: 502,
  code: 'compute_backend_error',
  message: `The app's response cannot be passed on: ${fault}.`,
})

/**
 * Returns a 502 for a request during which the app crashed.
 *
 * @param crash see `SiteOptions.crash`
 */
export const crashedMeanwhile = (crash: string): OwnResponse => ({
  status: 502,
  code: 'compute_backend_error',
  message: `The app crashed before its response was complete: ${crash}`,
})

/** A 500 for files that could not be served. */
export const FAILED: OwnResponse = {
  status: 500,
  code: 'internal_error',
  message: "The file could not be read; berth's log tells why.",
}

/** Reports whether an Accept field names HTML, as browsers do when they want a page. */
export const wantsHtml = (accept: string | null): boolean => /\btext\/html\b/i.test(accept ?? '')

/** Returns the body of a response: a page for browsers, else JSON in the form of all of berth's errors. */
export function ownContent(
  response: OwnResponse,
  isPage: boolean,
): { type: string; content: Buffer<ArrayBuffer> } {
  if (isPage) return { type: HTML, content: Buffer.from(page(response)) }
  const body: ErrorBody = { error: response.code, message: response.message }
  return { type: 'application/json', content: Buffer.from(JSON.stringify(body)) }
}

/**
 * Returns the header and the body of a response.
 *
 * @param accept the request's Accept field
 */
export function ownMessage(
  response: OwnResponse,
  accept: string | null,
): { headers: [name: string, value: string][]; content: Buffer<ArrayBuffer> } {
  const { type, content } = ownContent(response, wantsHtml(accept))
  return { headers: ownHeaders(response, type, content.length), content }
}

/**
 * Returns the header of a response with a body of berth's own.
 *
 * @param length of the body, in bytes
 */
export function ownHeaders(
  { retryAfter }: OwnResponse,
  type: string,
  length: number,
): [name: string, value: string][] {
  const headers: [string, string][] = [
    ['Content-Type', type],
    ['Content-Length', String(length)],
    ['Cache-Control', 'no-store'],
  ]
  if (type === HTML) headers.push(['Content-Security-Policy', POLICY])
  if (retryAfter !== undefined) headers.push(['Retry-After', String(retryAfter)])
  return headers
}

/**
 * Builds a page of berth's own in place of a site's. It loads nothing, because a site's paths are not berth's.
 *
 * @param reload seconds after which a browser reloads it
 */
export function pageOf(title: string, body: Html, reload?: number): string {
  const head = reload !== undefined && html`<meta http-equiv="refresh" content="${reload}">`
  return standaloneDocument({ title, body, head }).text
}

const page = (response: OwnResponse): string =>
  pageOf(`${response.status} ${REASONS[response.status]}`, html`<p>${response.message}</p>`, response.reload)

/** Escapes a text for HTML, attributes included. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
