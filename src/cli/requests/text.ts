import { briefId } from '../ids.ts'
import { effectText } from '../nouns/faults.ts'
import { paint, printable, type Style } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import type { FollowedRequest } from './follow.ts'

/** Width of the longest method. */
const METHOD_WIDTH = 'DELETE'.length

/** Indentation of lines that belong to the line above. */
const INDENT = ' '.repeat('00:00:00  '.length)

/** How requests are shown. */
interface RequestStyle {
  /** With the bodies of request and response. */
  readonly bodies: boolean
  /** With their headers. */
  readonly headers: boolean
  /** Whether there are several accounts, so that each is worth naming. */
  readonly accounts: boolean
}

/** Returns a request as text: one line, followed by its faults, its near misses and, if asked for, headers and bodies. */
export function requestText(
  out: OutputStream,
  entry: FollowedRequest,
  { bodies, headers, accounts }: RequestStyle,
): string {
  const dim = (text: string): string => paint(out, 'dim', text)
  const status = paint(out, styleOf(entry.status), String(entry.status))
  const caller = [
    entry.operation,
    accounts ? entry.account_id : null,
    entry.client ?? (entry.api_key_id === null ? null : briefId(entry.api_key_id)),
  ]
    .filter((part) => part !== null)
    .join('  ')
  const aborted = entry.aborted ? `  ${paint(out, 'yellow', 'the client had gone')}` : ''
  const line = [
    dim(entry.at.slice(11, 19)),
    status,
    `${Math.round(entry.ms)} ms`.padStart(8),
    entry.method.padEnd(METHOD_WIDTH),
    printable(entry.path),
  ].join('  ')
  const misses = entry.near_misses.map(({ at, message }) =>
    indentLine(paint(out, 'yellow', `${printable(at)}: `) + printable(message)),
  )
  const faults = entry.faults.map(({ fault_id, effect }) =>
    indentLine(paint(out, 'yellow', `${printable(fault_id)}: `) + printable(effectText(effect))),
  )
  const shown = [
    headers ? headerText('→', entry.request_headers) : '',
    bodies ? bodyText('→', entry.request) : '',
    headers ? headerText('←', entry.response_headers) : '',
    bodies ? bodyText('←', entry.response, entry.response_type) : '',
  ]
  return [
    `${line}  ${dim(printable(caller))}${aborted}\n`,
    ...faults,
    ...misses,
    ...shown.map((text) => dim(text)),
  ].join('')
}

const indentLine = (text: string): string => `${INDENT}${text}\n`

const headerText = (sign: string, headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => indentLine(`${sign} ${printable(`${name}: ${value}`)}`))
    .join('')

function bodyText(sign: string, body: FollowedRequest['request'], type: string | null = null): string {
  if (!body) {
    const isJson = type === null || type.startsWith('application/json')
    return isJson ? '' : indentLine(`${sign} (${printable(type)})`)
  }
  const text = typeof body.body === 'string' ? body.body : JSON.stringify(body.body, null, 2)
  const lines = toPlainText(`${text}${body.truncated ? '…' : ''}`).split('\n')
  return lines.map((line, at) => indentLine(`${at === 0 ? sign : ' '} ${line}`)).join('')
}

function styleOf(status: number): Style {
  if (status >= 500) return 'red'
  return status >= 400 ? 'yellow' : 'green'
}
