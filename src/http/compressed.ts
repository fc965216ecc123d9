import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

const compress = promisify(gzip)

/**
 * Compresses a response where the client takes gzip (RFC 9110, section 12.5.3), off the main thread. Not for one that has
 * a secret beside words of the request: its length would tell whether they are the same.
 */
export async function compressed(request: Request, response: Response): Promise<Response> {
  const headers = new Headers(response.headers)
  headers.append('vary', 'accept-encoding')
  const { status } = response
  if (!takesGzip(request)) return new Response(response.body, { status, headers })
  headers.set('content-encoding', 'gzip')
  // A strong tag names these very bytes (RFC 9110, section 8.8.3).
  const etag = headers.get('etag')
  if (etag?.startsWith('"')) headers.set('etag', `W/${etag}`)
  return new Response(await compress(await response.arrayBuffer()), { status, headers })
}

/** Reports whether a client takes gzip. */
export const takesGzip = (request: Request): boolean =>
  (request.headers.get('accept-encoding') ?? '')
    .split(',')
    .some((coding) => /^\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/i.test(coding))
