import { toIso } from '../../runtime/clock.ts'
import { type Html, html } from '../pages/html.ts'

/** When something was, in UTC to the minute. @param at milliseconds since 1970, or ISO 8601 */
export function moment(at: number | string): Html {
  const date = new Date(at)
  const [, day, month, year, time = ''] = date.toUTCString().split(' ')
  return html`<time datetime="${toIso(date.getTime())}">${day} ${month} ${year}, ${time.slice(0, 5)} UTC</time>`
}

/** When something was used last, as a sentence goes on. */
export const lastUsed = (at: number | string | null): Html =>
  at === null ? html`never used` : html`last used ${moment(at)}`

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Where the answers to a client go: anybody may give themselves any name, but not any address. */
export function placeOf(redirectUris: readonly string[]): string {
  const places = redirectUris.map((uri) => {
    const url = URL.parse(uri)
    if (!url) return uri
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return `an app for ${url.protocol}// links`
    return LOOPBACK.test(url.hostname) ? 'this machine' : url.host
  })
  return [...new Set(places)].join(', ')
}

/** Browsers by what only they write; the order counts, since most write the names of others too. */
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

/** What a browser is called, as in "Firefox on Linux": to tell one's own apart, and no proof of anything. */
export function browserName(userAgent: string): string {
  const find = (table: typeof BROWSERS) => table.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = find(BROWSERS) ?? (userAgent.split(/[\s/]/, 1)[0] || 'Unknown browser')
  const system = find(SYSTEMS)
  return system === undefined ? browser : `${browser} on ${system}`
}
