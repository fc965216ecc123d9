import type { Dialer } from '../../compute/sandbox.ts'
import type { AppAddress } from '../app-runtime/health.ts'
import { visitorOf } from './visitor.ts'

/** What is known of a response that is an error. */
export interface ErrorPage {
  readonly status: number
  /** The beginning of its body. */
  readonly body: string
}

/** A likely cause of an error, and its remedy. */
interface Cause {
  /** Matches the pages that frameworks send for it. */
  readonly pattern: RegExp
  /** Follows the status. */
  readonly named?: string
  readonly remedy: string
}

const REFUSES_HOST = 'The app refuses the host name of the request.'

/** Errors that the pages of frameworks tell apart. The first that fits counts. */
const CAUSES: readonly Cause[] = [
  {
    // Without DEBUG the page names no cause. Hardly anything else makes Django refuse a GET so.
    pattern: /Invalid HTTP_HOST header|DisallowedHost|<h1>Bad Request \(400\)<\/h1>/,
    named: 'Invalid HTTP_HOST header',
    remedy: `${REFUSES_HOST} Allow '127.0.0.1' and '.localhost' in ALLOWED_HOSTS of its Django settings.`,
  },
  {
    pattern: /Blocked hosts?:|ActionDispatch::HostAuthorization/,
    named: 'Blocked host',
    remedy: `${REFUSES_HOST} Allow it in Rails: config.hosts << "127.0.0.1" << ".localhost".`,
  },
  {
    pattern: /Host not permitted/,
    remedy: `${REFUSES_HOST} Allow "127.0.0.1" and ".localhost" in Sinatra's host_authorization (permitted_hosts).`,
  },
  {
    pattern: /Blocked request\. This host/,
    remedy: `${REFUSES_HOST} Allow "127.0.0.1" and ".localhost" in server.allowedHosts, or preview.allowedHosts, of vite.config.`,
  },
  {
    pattern: /invalid host(?:name| header)|host '?[^'\s]*'? is not trusted|untrusted (?:host|domain)/i,
    remedy: `${REFUSES_HOST} Allow "127.0.0.1", "localhost" and "*.localhost" where the app lists its hosts (allowed_hosts, trusted_hosts, allowedHosts).`,
  },
  {
    pattern: /<h1>Server Error \(500\)<\/h1>/,
    remedy:
      'Django prints no traceback while DEBUG is False, unless LOGGING of its settings has a console handler. If its css is the cause (a staticfiles manifest), run "python manage.py collectstatic --noinput" in "build" of berth.json.',
  },
]

/** What to look at if the page of an error says nothing. */
const BY_STATUS: readonly (readonly [status: RegExp, remedy: string])[] = [
  [
    /^400$/,
    'If it accepts only the host name of its public site, allow 127.0.0.1 and .localhost, too; its log may say more.',
  ],
  [/^403$/, 'Its log, or its rules for who may see pages, say why.'],
  [/^404$/, 'It has no page there. If its pages begin elsewhere, open it there.'],
  [/^405$/, 'It has no page there for GET.'],
  [/^5/, 'Its log says why, if it printed a reason.'],
]

/** Describes an error for a person: `status 400 (Invalid HTTP_HOST header). The app refuses …`, with the remedy. */
export function describeError({ status, body }: ErrorPage): string {
  const cause = CAUSES.find(({ pattern }) => pattern.test(body))
  const remedy = cause?.remedy ?? BY_STATUS.find(([pattern]) => pattern.test(String(status)))?.[1]
  const named = cause?.named === undefined ? '' : ` (${cause.named})`
  return [`status ${status}${named}.`, remedy].filter(Boolean).join(' ')
}

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
