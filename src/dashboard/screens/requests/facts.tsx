import { Icon } from '../../components/button.tsx'
import { shortId } from '../../components/copy.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest, Project } from '../../store/store.ts'

/** Who sent a request: berth's own client, or the account and its key, by their names where they are known. */
export function Who({ request }: { request: JournalRequest }) {
  const { store } = useDashboard()
  const { account_id: accountId, api_key_id: keyId, client } = request
  if (accountId === null) return <>no valid key</>
  const account = store.accounts.open().get(accountId)
  const key = keyId === null ? undefined : store.keys.open().get(keyId)
  const name = client ?? (key?.label || (keyId === null ? '' : shortId(keyId)))
  return (
    <>
      <bdi title={accountId}>{account?.label || shortId(accountId)}</bdi>
      {name !== '' && (
        <>
          {' · '}
          <bdi title={keyId ?? ''}>{name}</bdi>
        </>
      )}
    </>
  )
}

/** Reports whether a request failed: its status says so, or the client had gone. */
export const isFailed = ({ status, aborted }: JournalRequest): boolean => status >= 400 || aborted

/** Reports whether the command line or a dashboard sent a request. */
export const isOwn = ({ client }: JournalRequest): boolean => client !== null

/** Returns a path as lists show it: ids are shortened. */
export const shortPath = (path: string): string => path.replace(/(_[0-9a-z]{8})[0-9a-z]{10,}/g, '$1…')

/** Reports whether a request only reads. */
export const isRead = ({ method }: JournalRequest): boolean => method === 'GET' || method === 'HEAD'

/** Returns the path of a request without its query. */
export const pathWithoutQuery = ({ path }: JournalRequest): string => path.split('?', 1)[0] ?? ''

/** Returns the code of the response to a request that failed (specification, "Errors"); null if it has none. */
export const errorCodeOf = ({ said }: JournalRequest): string | null => said?.error ?? null

/** What is found in a request. */
interface Found {
  /** When it came, in milliseconds since 1970. */
  readonly at: number
  /** Ids of the objects that its path names: `srv_…`, `prj_…`. */
  readonly named: readonly string[]
  /** Ids of the objects that it made, from its response. */
  readonly made: readonly string[]
  /** The server that it names, made, or that its response names. */
  readonly serverId: string | null
}

/** Finds the objects that requests are about, once for each: lists of thousands ask at each change. */
export class RequestReader {
  readonly #found = new WeakMap<JournalRequest, Found>()
  readonly #sought = new WeakMap<JournalRequest, string>()

  /** Returns what is found in a request. */
  of(request: JournalRequest): Found {
    const known = this.#found.get(request)
    if (known) return known
    const found = findIn(request)
    this.#found.set(request, found)
    return found
  }

  /** Returns the server that a request is about; null if it is about none, or that is not known. */
  serverId(request: JournalRequest, projects: readonly Project[]): string | null {
    const { serverId, named } = this.of(request)
    if (serverId !== null) return serverId
    const project = named.find((id) => id.startsWith('prj_'))
    return projects.find(({ id }) => id === project)?.server_id ?? null
  }

  /** Returns the text that a search looks through: its columns, the ids, and the message of a failure. */
  sought(request: JournalRequest): string {
    const known = this.#sought.get(request)
    if (known !== undefined) return known
    const { id, method, path, status, operation, near_misses: misses } = request
    const said = [errorCodeOf(request), request.said?.message ?? '']
    const text = [id, method, path, status, operation, ...said, ...misses.map(({ message }) => message)]
      .join(' ')
      .toLowerCase()
    this.#sought.set(request, text)
    return text
  }
}

function findIn(request: JournalRequest): Found {
  const named = pathWithoutQuery(request)
    .split('/')
    .filter((segment) => /^[a-z]+_[^/]+$/.test(segment))
  const made = request.said?.made ?? []
  const server = [...named, ...made].find((id) => id.startsWith('srv_'))
  return {
    at: Date.parse(request.at),
    named,
    made,
    serverId: server ?? request.said?.server_id ?? null,
  }
}

/** Marks a request in a list: that part of it was ignored, and that a fault applied to it. */
export const RequestMarks = ({ request: { near_misses: misses, faults } }: { request: JournalRequest }) => (
  <>
    {misses.length > 0 && (
      <span class="miss" title={misses[0]?.message}>
        <Icon name="warning" />
        <span class="miss-words">near miss</span>
      </span>
    )}
    {faults.length > 0 && (
      <span class="chip" title={faultTitle(faults)}>
        fault
      </span>
    )}
  </>
)

/** Says whether the response of a request to which faults applied is theirs. */
const faultTitle = (faults: JournalRequest['faults']): string =>
  faults.some(({ effect }) => 'error' in effect || 'respond' in effect)
    ? 'A fault gave this response.'
    : 'A fault applied to this request.'
