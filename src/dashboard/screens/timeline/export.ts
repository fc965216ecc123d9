import type { WholeRequest } from '../../store/store.ts'
import { isThing, type TreeEntry } from './tree.ts'

/** Returns entries and all that they caused, the oldest first. */
const flat = (entries: readonly TreeEntry[]): TreeEntry[] =>
  entries.flatMap((entry) => [entry, ...flat(entry.children)]).sort((a, b) => a.at - b.at)

/** Requests with their bodies, by id: lists have none. */
export type WholeRequests = ReadonlyMap<string, WholeRequest>

/** Returns entries as JSON Lines, the oldest first. Each says by which entry it was caused. */
export function toJsonLines(entries: readonly TreeEntry[], whole: WholeRequests): string {
  const causes = new Map<TreeEntry, string>()
  for (const cause of flat(entries)) for (const child of cause.children) causes.set(child, cause.key)
  return flat(entries)
    .map((entry) => {
      const { key, at, subject, serverId } = entry
      const value = isThing(subject)
        ? {
            ...subject.value,
            steps: subject.value.steps.map(({ at: when, state }) => ({ at: iso(when), state })),
          }
        : subject.kind === 'request'
          ? (whole.get(subject.value.id) ?? subject.value)
          : subject.value
      const line = {
        key,
        at: iso(at),
        kind: subject.kind,
        server_id: serverId,
        cause: causes.get(entry) ?? null,
        value,
      }
      return `${JSON.stringify(line)}\n`
    })
    .join('')
}

/** Returns the requests among entries as an HTTP archive (HAR 1.2), the oldest first. */
export function toHar(
  entries: readonly TreeEntry[],
  whole: WholeRequests,
  { baseUrl, version }: { baseUrl: string; version: string },
): string {
  const requests = flat(entries).flatMap(({ subject }) =>
    subject.kind === 'request' ? (whole.get(subject.value.id) ?? []) : [],
  )
  const log = {
    version: '1.2',
    creator: { name: 'berth', version },
    entries: requests.map((request) => harEntry(request, baseUrl)),
  }
  return `${JSON.stringify({ log }, null, 2)}\n`
}

/** Returns an entry of an HTTP archive. Secrets are masked in it, as the journal shows it. */
function harEntry(entry: WholeRequest, baseUrl: string) {
  const { at, ms, method, path, status, request, response, response_type: type } = entry
  const url = new URL(path, baseUrl)
  const sent = request === null ? '' : textOf(request.body)
  const got = response === null ? '' : textOf(response.body)
  return {
    startedDateTime: at,
    time: ms,
    request: {
      method,
      url: url.href,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: harHeaders(entry.request_headers),
      queryString: [...url.searchParams].map(([name, value]) => ({ name, value })),
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

const iso = (at: number): string => new Date(at).toISOString()
const textOf = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))
const bytesOf = (text: string): number => new TextEncoder().encode(text).byteLength

/** Has the browser save a text as a file. */
export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
