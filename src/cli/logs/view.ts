import { paint, printable, type Style } from '../output.ts'
import { plain } from '../plain-text.ts'
import type { Sink } from '../terminal.ts'
import type { JournalEntry } from './follow.ts'

/** As wide as the longest method. */
const METHOD_WIDTH = 'DELETE'.length

/** Where what belongs to the line above begins. */
const INDENT = ' '.repeat('00:00:00  '.length)

/** Shows a request: one line, and below it what nearly was right and, where wanted, the bodies. */
export function requestText(sink: Sink, entry: JournalEntry, bodies: boolean): string {
  const dim = (text: string): string => paint(sink, 'dim', text)
  const status = paint(sink, styleOf(entry.status), String(entry.status))
  const who = [entry.operation, entry.account_id].filter((part) => part !== null).join('  ')
  const gone = entry.aborted ? `  ${paint(sink, 'yellow', 'the client had gone')}` : ''
  const line = [
    dim(entry.at.slice(11, 19)),
    status,
    `${Math.round(entry.ms)} ms`.padStart(8),
    entry.method.padEnd(METHOD_WIDTH),
    printable(entry.path),
  ].join('  ')
  const misses = entry.near_misses.map(({ at, message }) =>
    below(paint(sink, 'yellow', `${printable(at)}: `) + printable(message)),
  )
  const shown = bodies
    ? [bodyText('→', entry.request), bodyText('←', entry.response, entry.response_type)]
    : []
  return [`${line}  ${dim(printable(who))}${gone}\n`, ...misses, ...shown.map((text) => dim(text))].join('')
}

const below = (text: string): string => `${INDENT}${text}\n`

function bodyText(sign: string, body: JournalEntry['request'], type: string | null = null): string {
  if (body === null) {
    const isJson = type === null || type.startsWith('application/json')
    return isJson ? '' : below(`${sign} (${printable(type)})`)
  }
  const text = typeof body.body === 'string' ? body.body : JSON.stringify(body.body, null, 2)
  const lines = plain(`${text}${body.truncated ? '…' : ''}`).split('\n')
  return lines.map((line, at) => below(`${at === 0 ? sign : ' '} ${line}`)).join('')
}

function styleOf(status: number): Style {
  if (status >= 500) return 'red'
  return status >= 400 ? 'yellow' : 'green'
}
