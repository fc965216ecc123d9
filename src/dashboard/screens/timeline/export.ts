import { HAR_END, harBegin, harEntry } from '../../../testing/journal/har.ts'
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
  const written = requests.map((request) => JSON.stringify(harEntry(request, baseUrl)))
  return `${harBegin(version)}${written.join(',')}${HAR_END}`
}

const iso = (at: number): string => new Date(at).toISOString()

/** Has the browser save a text as a file. */
export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
