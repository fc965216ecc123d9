import { Elysia } from 'elysia'
import type { Ids } from '../runtime/ids.ts'
import { type HostOptions, hostGuard } from './host.ts'

/** What every request passes first: it gets its id, and its Host header is checked. */
export const requestEntry = (ids: Ids, host: HostOptions) => {
  const check = hostGuard(host)
  return new Elysia({ name: 'berth/entry' }).onRequest(({ request, set }) => {
    set.headers['x-request-id'] = ids.next('req')
    check(request.headers.get('host'))
  })
}
