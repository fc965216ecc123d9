import { useDashboard } from '../dashboard.ts'
import { CopyButton } from './copy.tsx'
import { TimeOfDay } from './time.tsx'

/** A request, as the lines that do the same. */
interface CommandLinesProps {
  /** The line for a terminal: `berth servers create`. Left out where only a program does it. */
  berth?: string
  method: string
  path: string
  body?: unknown
  /** The header `accept`, where the endpoint asks for it. */
  accept?: string
  /** Whether the lines are shown at first. */
  isOpen?: boolean
}

/** Shows how a terminal or a program does the same. The key stays a variable. */
export function CommandLines({ berth, isOpen, ...request }: CommandLinesProps) {
  const { context } = useDashboard()
  const curl = curlLine(context.base_url, request)
  return (
    <details class="command-lines" open={isOpen}>
      <summary>The same from a terminal</summary>
      {[...(berth === undefined ? [] : [berth]), curl].map((line) => (
        <div class="line" key={line}>
          <code>
            <Breakable text={line} />
          </code>
          <CopyButton text={line} label="Copy the line" />
        </div>
      ))}
    </details>
  )
}

/** A text whose addresses break after a slash in a narrow window, and not within an id. */
const Breakable = ({ text }: { text: string }) => (
  <>
    {text.split(/(?<=\/)(?!\/)/).map((part, at) => (
      <>
        {at > 0 && <wbr />}
        {part}
      </>
    ))}
  </>
)

/** A request, as much of it as a line needs. */
interface Line {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly accept?: string | undefined
}

/** Returns the line for curl that sends a request. */
export function curlLine(baseUrl: string, { method, path, body, accept }: Line): string {
  const accepted = accept === undefined ? '' : ` -H ${shellQuoted(`Accept: ${accept}`)}`
  const data =
    body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${shellQuoted(JSON.stringify(body))}`
  const url = shellQuoted(`${baseUrl}${path}`)
  return `curl${method === 'GET' ? '' : ` -X ${method}`} ${url} -H "Authorization: Bearer $${tokenOf(path)}"${accepted}${data}`
}

/** Returns the variable with the credential that a path takes. */
export const tokenOf = (path: string): string =>
  path.startsWith('/_berth/') ? 'BERTH_ADMIN_TOKEN' : 'BERTH_API_KEY'

/** Quotes a word for a shell. */
export const shellQuoted = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** Headers of a request or a response, in a folded table. */
export function Headers({ title, headers }: { title: string; headers: Readonly<Record<string, string>> }) {
  const fields = Object.entries(headers)
  if (fields.length === 0) return null
  return (
    <details class="headers">
      <summary>
        {title} <span class="count">{fields.length}</span>
      </summary>
      <table>
        <tbody>
          {fields.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <bdi>{value}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}

/** A status of HTTP in the colour of a success, of a client's mistake or of a server's failure. */
export const HttpStatus = ({ of: status }: { of: number | null }) => (
  <span
    class={`http-status ${status === null || status >= 500 ? 'failed' : status >= 400 ? 'refused' : 'fine'}`}
  >
    {status ?? 'no response'}
  </span>
)

/** What emptied the journal of requests. */
const CAUSES = {
  start: 'kept since the start at',
  reset: 'emptied by the reset at',
  restore: 'emptied by the restore at',
  clear: 'cleared at',
} as const

/** Says why there are no requests from before, and since when. */
export function JournalSince() {
  const journal = useDashboard().health.value.value?.journal
  if (!journal) return null
  return (
    <span class="journal-since quiet">
      Requests {CAUSES[journal.begun_by]} <TimeOfDay at={Date.parse(journal.since)} />
    </span>
  )
}
