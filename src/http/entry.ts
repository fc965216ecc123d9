import { Elysia } from 'elysia'
import type { Ids } from '../runtime/ids.ts'
import { type HostOptions, hostGuard } from './host.ts'

/**
 * What every request passes first: it gets its id, and its Host header is checked.
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
  })
}
