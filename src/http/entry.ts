import { Elysia } from 'elysia'
import { BerthError } from '../errors.ts'
import type { Ids } from '../runtime/ids.ts'
import { type HostOptions, hostGuard } from './host.ts'

/**
 * What every request passes first: it gets its id, its Host header is checked, and that its path is text: routes are
 * handed null for a parameter that is none.
 *
 * @param ids makes the ids, or says for a request what makes them
 * @param begun is told of each, with where its answer's settings are kept
 */
export const requestEntry = (
  ids: Ids | ((request: Request) => Ids),
  host: HostOptions,
  begun?: (set: { headers: object }, request: Request) => void,
) => {
  const check = hostGuard(host)
  const idsOf = typeof ids === 'function' ? ids : () => ids
  return new Elysia({ name: 'berth/entry' }).onRequest(({ request, set }) => {
    set.headers['x-request-id'] = idsOf(request).next('req')
    begun?.(set, request)
    check(request.headers.get('host'))
    checkSlashes(request.url)
    if (!isText(request.url)) {
      throw new BerthError('not_found', 'There is nothing at a path that is no UTF-8 once it is decoded.')
    }
  })
}

/**
 * Refuses a path with a slash at its end, but for the root, or with two in a row: no operation is there, and a client that
 * builds such paths lacks an id.
 *
 * @throws BerthError 404
 */
function checkSlashes(url: string): void {
  const from = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', from)
  const end = query === -1 ? url.length : query
  if (end - from < 2) return
  const double = url.indexOf('//', from)
  if (!url.endsWith('/', end) && (double === -1 || double >= end)) return
  const path = url.slice(from, end)
  throw new BerthError(
    'not_found',
    `There is nothing at ${path}: no path has a slash at its end or two in a row. Ask for ${path.replace(/\/+/g, '/').replace(/(.)\/$/, '$1')}.`,
  )
}

/** Whether the escapes of a URL's path are UTF-8 (RFC 3986, 2.5). */
function isText(url: string): boolean {
  if (!url.includes('%')) return true
  const path = url.split('?', 1)[0] ?? ''
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
