import { useDashboard } from '../dashboard.ts'
import { CopyButton } from './copy.tsx'

/** A request, as the lines that do the same. */
interface CommandLinesProps {
  /** The line for a terminal: `berth servers create`. */
  berth: string
  method: string
  path: string
  body?: unknown
  /** Whether the lines are shown at first. */
  isOpen?: boolean
}

/** Shows how a terminal or a program does the same. The key stays a variable. */
export function CommandLines({ berth, method, path, body, isOpen }: CommandLinesProps) {
  const { context } = useDashboard()
  const curl = curlLine(context.base_url, { method, path, body })
  return (
    <details class="command-lines" open={isOpen}>
      <summary>The same from a terminal</summary>
      {[berth, curl].map((line) => (
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
}

/** Returns the line for curl that sends a request. */
export function curlLine(baseUrl: string, { method, path, body }: Line): string {
  const data =
    body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`
  const url = quoted(`${baseUrl}${path}`)
  return `curl${method === 'GET' ? '' : ` -X ${method}`} ${url} -H "Authorization: Bearer $${tokenOf(path)}"${data}`
}

/** Returns the variable with the credential that a path takes. */
export const tokenOf = (path: string): string =>
  path.startsWith('/_berth/') ? 'BERTH_ADMIN_TOKEN' : 'BERTH_API_KEY'

/** Quotes a word for a shell. */
export const quoted = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
