import { Elysia } from 'elysia'
import { UnknownPath } from '../errors.ts'
import { percentDecoded } from '../runtime/decode.ts'
import type { Ids } from '../runtime/ids.ts'
import { type HostOptions, hostGuard } from './host.ts'

/** Returns the headers that every response of berth has, of the settings of one that is made apart. */
export const identifyingHeaders = ({ headers }: { headers: Record<string, unknown> }) => ({
  'x-request-id': String(headers['x-request-id']),
  'x-berth-version': String(headers['x-berth-version']),
})

/**
 * Handles every request first: gives it its id, checks its Host header, and refuses a path that is no valid text, for
 * which Elysia would pass null as a parameter.
 *
 * @param ids makes the ids, or selects their source for a request
 * @param version that of berth
 * @param begun called for each request, with the settings of its response
 */
export const requestEntry = (
  ids: Ids | ((request: Request) => Ids),
  version: string,
  host: HostOptions,
  begun?: (set: { headers: Record<string, unknown> }, request: Request) => void,
) => {
  const check = hostGuard(host)
  const idsOf = typeof ids === 'function' ? ids : () => ids
  return new Elysia({ name: 'berth/entry' }).onRequest(({ request, set }) => {
    set.headers['x-request-id'] = idsOf(request).next('req')
    set.headers['x-berth-version'] = version
    begun?.(set, request)
    check(request.headers.get('host'))
    checkSlashes(request.url)
    if (!isText(request.url)) {
      throw new UnknownPath('There is nothing at a path that is no UTF-8 once it is decoded.')
    }
  })
}

/**
 * Refuses a path with two slashes in a row or, except for the root, with a slash at its end. No operation has such a
 * path, and a client that builds one lacks an id.
 *
 * @throws UnknownPath
 */
function checkSlashes(url: string): void {
  const from = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', from)
  const end = query === -1 ? url.length : query
  if (end - from < 2) return
  const double = url.indexOf('//', from)
  if (!url.endsWith('/', end) && (double === -1 || double >= end)) return
  const path = url.slice(from, end)
  throw new UnknownPath(
    `There is nothing at ${path}: no path has a slash at its end or two in a row. Ask for ${path.replace(/\/+/g, '/').replace(/(.)\/$/, '$1')}.`,
  )
}

/** Reports whether the escapes in a URL's path are UTF-8 (RFC 3986, 2.5). */
function isText(url: string): boolean {
  if (!url.includes('%')) return true
  return percentDecoded(url.split('?', 1)[0] ?? '') !== null
}
