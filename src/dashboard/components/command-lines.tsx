import { useDashboard } from '../dashboard.ts'
import { CopyButton } from './copy.tsx'

/** A request, as the lines that do the same. */
interface CommandLinesProps {
  /** The line for a terminal: `berth servers create`. */
  berth: string
  method: string
  path: string
  body?: unknown
}

/** Shows how a terminal or a program does the same. The key stays a variable. */
export function CommandLines({ berth, method, path, body }: CommandLinesProps) {
  const { context } = useDashboard()
  const data =
    body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`
  const token = path.startsWith('/_berth/') ? 'BERTH_ADMIN_TOKEN' : 'BERTH_API_KEY'
  const curl = `curl${method === 'GET' ? '' : ` -X ${method}`} ${context.base_url}${path} -H "Authorization: Bearer $${token}"${data}`
  return (
    <details class="command-lines">
      <summary>The same from a terminal</summary>
      {[berth, curl].map((line) => (
        <div class="line" key={line}>
          <code>{line}</code>
          <CopyButton text={line} label="Copy the line" />
        </div>
      ))}
    </details>
  )
}

/** Quotes a word for a shell. */
export const quoted = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
