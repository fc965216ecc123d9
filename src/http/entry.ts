import { Elysia } from 'elysia'
import type { Ids } from '../runtime/ids.ts'
import { type HostOptions, hostGuard } from './host.ts'

/**
 * What every request passes first: it gets its id, and its Host header is checked.
 *
 * @param ids makes the ids, or says for a request what makes them
 */
export const requestEntry = (ids: Ids | ((request: Request) => Ids), host: HostOptions) => {
  const check = hostGuard(host)
  const idsOf = typeof ids === 'function' ? ids : () => ids
  return new Elysia({ name: 'berth/entry' }).onRequest(({ request, set }) => {
    set.headers['x-request-id'] = idsOf(request).next('req')
    check(request.headers.get('host'))
  })
}
