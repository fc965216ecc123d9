import type { Dialer } from '../../compute/sandbox.ts'
import type { AppAddress } from '../app-runtime/health.ts'
import { describeError } from './causes.ts'
import { visitorOf } from './visitor.ts'

/** Milliseconds for the requests together. */
const LIMIT_MS = 2000

/** Bytes of a page that are read. */
const PAGE_BYTES = 64 * 1024

/**
 * Describes the error that an app responds with to its health path, for a person: `status 500. Its log says why, if it
 * printed a reason.` Says what its home page responds with, too, if that is another one.
 *
 * @param status of its last response
 */
export async function describeErrorAt(
  server: Dialer,
  { host, port }: AppAddress,
  path: string,
  status: number,
): Promise<string> {
  const authority = host === '::1' ? `[::1]:${port}` : `${host}:${port}`
  const visit = visitorOf({ kind: 'app', server, port, host }, authority)
  const signal = AbortSignal.timeout(LIMIT_MS)
  const ask = (target: string) =>
    visit?.({ target, accept: 'text/html,*/*;q=0.8', wanted: PAGE_BYTES }, signal)
  const [response, home] = await Promise.all([ask(path), path === '/' ? null : ask('/')])
  const body = response?.status === status ? response.body : ''
  const besides = home ? ` GET / has status ${home.status}.` : ''
  return `${describeError({ status, body })}${besides}`
}
