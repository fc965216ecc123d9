/**
 * Requests as an HTTP archive (HAR 1.2), for the report of a run and for the dashboard, in whose page this runs too.
 */

import type { ShownEntry, WholeEntry } from './shown.ts'

/** A request as the journal shows it, with its bodies. */
type HarRequest = Pick<WholeEntry, 'request' | 'response'> &
  Pick<
    ShownEntry,
    'at' | 'ms' | 'method' | 'path' | 'status' | 'response_type' | 'request_headers' | 'response_headers'
  >

/** Returns the beginning of an HTTP archive (HAR 1.2), up to its first entry. `HAR_END` ends it. */
export const harBegin = (version: string): string =>
  `{"log":{"version":"1.2","creator":${JSON.stringify({ name: 'berth', version })},"entries":[`

/** The end of an HTTP archive. */
export const HAR_END = ']}}\n'

/**
 * Returns an entry of an HTTP archive. Secrets are masked in it, as the journal shows it.
 *
 * @param baseUrl of the instance
 * @param mask masks the values of the query, which are decoded
 */
export function harEntry(
  entry: HarRequest,
  baseUrl: string,
  mask: (text: string) => string = (text) => text,
): object {
  const { at, ms, method, path, status, request, response, response_type: type } = entry
  const [, query = ''] = /\?(.*)$/s.exec(path) ?? []
  const sent = request === null ? '' : textOf(request.body)
  const got = response === null ? '' : textOf(response.body)
  return {
    startedDateTime: at,
    time: ms,
    request: {
      method,
      // Not resolved: a path may begin with two slashes.
      url: baseUrl.replace(/\/$/, '') + path,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: harHeaders(entry.request_headers),
      queryString: [...new URLSearchParams(query)].map(([name, value]) => ({
        name: mask(name),
        value: mask(value),
      })),
      ...(request !== null && { postData: { mimeType: 'application/json', text: sent } }),
      headersSize: -1,
      bodySize: bytesOf(sent),
    },
    response: {
      status,
      statusText: '',
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: harHeaders(entry.response_headers),
      content: { size: bytesOf(got), mimeType: type ?? '', ...(response !== null && { text: got }) },
      redirectURL: entry.response_headers.location ?? '',
      headersSize: -1,
      bodySize: bytesOf(got),
    },
    cache: {},
    timings: { send: 0, wait: ms, receive: 0 },
  }
}

const harHeaders = (headers: Readonly<Record<string, string>>): { name: string; value: string }[] =>
  Object.entries(headers).map(([name, value]) => ({ name, value }))

const textOf = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))
const bytesOf = (text: string): number => new TextEncoder().encode(text).byteLength
