import type { ErrorBody, ErrorCode } from '../../errors.ts'
import type { Refusal } from './http1/head.ts'
import type { HttpDate } from './http1/http-date.ts'

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

const REASONS: Readonly<Record<OwnResponse['status'], string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  416: 'Range Not Satisfiable',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
}

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
 * Returns a 502 for a response that cannot be passed on.
 *
 * @param fault its defect
 */
export const badGateway = (fault: string): OwnResponse => ({
  status: 502,
  code: 'compute_backend_error',
  message: `The app gave no answer that can be passed on: ${fault}.`,
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
  html: boolean,
): { type: string; content: Buffer<ArrayBuffer> } {
  if (html) return { type: 'text/html; charset=utf-8', content: Buffer.from(page(response)) }
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
  const html = wantsHtml(accept)
  const { type, content } = ownContent(response, html)
  const headers: [string, string][] = [
    ['Content-Type', type],
    ['Content-Length', String(content.length)],
    ['Cache-Control', 'no-store'],
  ]
  if (html) headers.push(['Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'"])
  if (response.retryAfter !== undefined) headers.push(['Retry-After', String(response.retryAfter)])
  return { headers, content }
}

/**
 * Returns the bytes of a response in HTTP/1.1.
 *
 * @param requestHead the request's head; null if it is unreadable
 * @param keepAlive whether the connection stays open
 */
export function ownBytes(
  response: OwnResponse,
  requestHead: string | null,
  keepAlive: boolean,
  date: HttpDate,
): Buffer {
  const accept = /^accept:([^\r\n]*)/im.exec(requestHead ?? '')?.[1] ?? null
  const { headers, content } = ownMessage(response, accept)
  const lines = [
    `HTTP/1.1 ${response.status} ${REASONS[response.status]}`,
    `Date: ${date}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(keepAlive ? [] : ['Connection: close']),
  ]
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  return requestHead?.startsWith('HEAD ') ? head : Buffer.concat([head, content])
}

function page({ status, message, reload }: OwnResponse): string {
  const again = reload === undefined ? '' : `<meta http-equiv="refresh" content="${reload}">`
  const title = `${status} ${REASONS[status]}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
${again}
<title>${title}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto; padding: 0 1.5rem;
  color: #222; background: #fff; overflow-wrap: anywhere }
h1 { font-size: 1.25rem }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } }
</style>
</head>
<body>
<h1>${title}</h1>
<p>${escapeHtml(message)}</p>
</body>
</html>
`
}

/** Escapes a text for HTML, attributes included. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
