import type { Caller } from '../../http/caller.ts'
import { type Html, html } from '../../http/pages/html.ts'
import type { Browser, Program } from '../../resources/accounts/access-model.ts'
import { toIso } from '../../runtime/clock.ts'
import type { GrantView } from '../oauth/grants.ts'
import { type BrowserSession, sessionEnd } from '../session/sessions.ts'

/** Returns a program as the API shows it. */
export const programView = (grant: GrantView): Program => ({
  id: grant.id,
  name: grant.clientName,
  client_id: grant.clientId,
  redirect_uris: grant.redirectUris,
  allowed_server_ids: grant.allowedServerIds,
  allowed_project_ids: grant.allowedProjectIds,
  created_at: toIso(grant.createdAt),
  last_used_at: grant.lastUsedAt === null ? null : toIso(grant.lastUsedAt),
})

/** Returns a browser as the API shows it to a caller, who may be that browser. */
export const browserView = (session: BrowserSession, { credentialId }: Caller): Browser => ({
  id: session.id,
  name: browserName(session.userAgent),
  is_admin: session.isAdmin,
  is_current: session.id === credentialId,
  created_at: toIso(session.createdAt),
  last_used_at: toIso(session.seenAt),
  expires_at: toIso(sessionEnd(session)),
})

/**
 * Renders a time in UTC, to the minute.
 *
 * @param at milliseconds since 1970, or ISO 8601
 */
export function formatTime(at: number | string): Html {
  const date = new Date(at)
  const [, day, month, year, time = ''] = date.toUTCString().split(' ')
  return html`<time datetime="${toIso(date.getTime())}">${day} ${month} ${year}, ${time.slice(0, 5)} UTC</time>`
}

/** Returns the time of the last use, as the end of a sentence. */
export const lastUsedText = (at: number | string | null): Html =>
  at === null ? html`never used` : html`last used ${formatTime(at)}`

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Returns the destinations of a client's codes. A client can choose its name freely, but not its address. */
export function destinationsOf(redirectUris: readonly string[]): string {
  const destinations = redirectUris.map((uri) => {
    const url = URL.parse(uri)
    if (!url) return uri
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return `an app for ${url.protocol}// links`
    return LOOPBACK.test(url.hostname) ? 'this machine' : url.host
  })
  return [...new Set(destinations)].join(', ')
}

/** Patterns for browsers. The order matters, since most browsers also send the names of others. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\bHeadlessChrome\//, 'Headless Chrome'],
  [/\b(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/**
 * Returns a browser's name, as in "Firefox on Linux". It helps people to recognise their own browser and proves
 * nothing.
 */
export function browserName(userAgent: string): string {
  const find = (table: typeof BROWSERS) => table.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = find(BROWSERS) ?? (userAgent.split(/[\s/]/, 1)[0] || 'Unknown browser')
  const system = find(SYSTEMS)
  return system === undefined ? browser : `${browser} on ${system}`
}
