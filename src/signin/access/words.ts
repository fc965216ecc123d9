import { type Html, html } from '../../http/pages/html.ts'
import { toIso } from '../../runtime/clock.ts'

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
