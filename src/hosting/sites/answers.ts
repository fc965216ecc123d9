import type { ErrorBody, ErrorCode } from '../../errors.ts'
import { httpDate } from './http1/date.ts'
import type { Refusal } from './http1/head.ts'

/** An answer of berth's own, in place of a site's. */
export interface OwnAnswer {
  readonly status: 400 | 403 | 404 | 405 | 408 | 416 | 431 | 500 | 501 | 502 | 503
  readonly code: ErrorCode
  readonly message: string
  /** Seconds after which it may be asked again. */
  readonly retryAfter?: number
  /** A browser asks again by itself after these seconds. */
  readonly reload?: number
}

const REASONS: Readonly<Record<OwnAnswer['status'], string>> = {
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

/** The answer to a request that is refused. */
export const refusalAnswer = ({ status, message }: Refusal): OwnAnswer => ({
  status,
  code: status === 403 ? 'forbidden' : 'bad_request',
  message,
})

/** 503: nothing stands behind the site just now. @param reason for a person; null where an app has not come up in time */
export const unavailable = (reason: string | null): OwnAnswer =>
  reason === null
    ? {
        status: 503,
        code: 'service_unavailable',
        message: 'The app has not started in time. Its log tells why; try again in a moment.',
        retryAfter: 1,
        reload: 2,
      }
    : { status: 503, code: 'service_unavailable', message: reason, retryAfter: 10 }

/** 502: what an app has answered cannot be passed on. @param fault what is wrong with it */
export const badAnswer = (fault: string): OwnAnswer => ({
  status: 502,
  code: 'compute_backend_error',
  message: `The app gave no answer that can be passed on: ${fault}.`,
})

/** 500: files could not be served. */
export const FAILED: OwnAnswer = {
  status: 500,
  code: 'internal_error',
  message: "The file could not be read; berth's log tells why.",
}

/** Whether an Accept field names HTML, as a browser does when it wants a page. */
export const wantsHtml = (accept: string | null): boolean => /\btext\/html\b/i.test(accept ?? '')

/** The body of an answer: a page for browsers, else the JSON of every failure. */
export function ownContent(answer: OwnAnswer, html: boolean): { type: string; content: Buffer<ArrayBuffer> } {
  if (html) return { type: 'text/html; charset=utf-8', content: Buffer.from(page(answer)) }
  const body: ErrorBody = { error: answer.code, message: answer.message }
  return { type: 'application/json', content: Buffer.from(JSON.stringify(body)) }
}

/**
 * The bytes of an answer.
 *
 * @param asked the head of the request that it answers, null where there is none that can be read
 */
export function ownAnswer(answer: OwnAnswer, asked: string | null, keepAlive: boolean): Buffer {
  const html = wantsHtml(/^accept:([^\r\n]*)/im.exec(asked ?? '')?.[1] ?? null)
  const { type, content } = ownContent(answer, html)
  const lines = [
    `HTTP/1.1 ${answer.status} ${REASONS[answer.status]}`,
    `Date: ${httpDate()}`,
    `Content-Type: ${type}`,
    `Content-Length: ${content.length}`,
    'Cache-Control: no-store',
    ...(html ? ["Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'"] : []),
    ...(answer.retryAfter === undefined ? [] : [`Retry-After: ${answer.retryAfter}`]),
    ...(keepAlive ? [] : ['Connection: close']),
  ]
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  return asked?.startsWith('HEAD ') ? head : Buffer.concat([head, content])
}

function page({ status, message, reload }: OwnAnswer): string {
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

/** Text as it stands in HTML, in attributes too. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
