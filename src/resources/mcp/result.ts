import type { CallToolResult } from '@modelcontextprotocol/server'
import type { ApiResponse } from './callers-api.ts'
import { type Cut, cutToFit, sizeAsJson, sizeAsText } from './cut.ts'
import { listCutOf, restOf, toReadOn } from './rest.ts'

/** Characters of a result up to which it is both text and structured content. A larger one is one of the two. */
const BRIEF = 2_000

/** Characters that are kept free for the sentences about a result. */
const SENTENCES = 600

/** Most cuts that the sentences name. @bound reader */
const MOST_NAMED = 4

/** Fields with exact bytes, beside the text of the same stream. */
const EXACT_FIELDS = ['stdoutBase64', 'stderrBase64']

/** How results are given to a client. */
export interface ResultForm {
  /** Most characters of a result. */
  readonly limit: number
  /** Whether the client knows the shapes of structured content, and so always needs it. */
  readonly hasSchemas: boolean
  /** Returns a text without the credentials that commands of servers have. */
  hide(text: string): string
}

/** Returns the response of an operation as the result of its tool. */
export function resultOf(
  { status, body }: ApiResponse,
  operationId: string,
  args: Readonly<Record<string, unknown>>,
  { limit, hasSchemas }: ResultForm,
): CallToolResult {
  if (status >= 400) return failure({ ...body, status }, limit)
  const whole = JSON.stringify(body)
  const readable = withoutBytes(body)
  const replaced = readable === body ? [] : [bytesSentence(whole.length <= BRIEF || hasSchemas)]
  if (whole.length <= BRIEF)
    return { content: textsOf(JSON.stringify(readable), ...replaced), structuredContent: body }
  const room = limit - SENTENCES
  const sizeOf = hasSchemas ? sizeAsJson : sizeAsText
  const shown = hasSchemas ? body : readable
  const { value, cuts } =
    sizeOf(shown) <= room
      ? { value: shown, cuts: [] }
      : cutToFit(readable, room, listCutOf(operationId), sizeOf)
  const about = [...replaced, ...cutSentences(operationId, args, body, cuts)]
  const content = toReadOn(operationId, value, cuts)
  if (!hasSchemas) return { content: textsOf(JSON.stringify(content), ...about) }
  return { content: textsOf('The result is in structuredContent.', ...about), structuredContent: content }
}

/** Reports whether a client gets all of a result, bytes that are not UTF-8 included. */
export function isWholeFor(body: Readonly<Record<string, unknown>>, form: ResultForm): boolean {
  const { length } = JSON.stringify(body)
  const isExact = length <= BRIEF || form.hasSchemas || withoutBytes(body) === body
  return isExact && (form.hasSchemas ? length : sizeAsText(body)) <= form.limit - SENTENCES
}

function failure(body: Readonly<Record<string, unknown>>, limit: number): CallToolResult {
  const text = JSON.stringify(body)
  if (sizeAsText(body) <= limit) return { isError: true, content: textsOf(text) }
  const { value } = cutToFit(body, limit, 'middle', sizeAsText)
  return { isError: true, content: textsOf(JSON.stringify(value)) }
}

/** Returns texts of a result, each a part of its content. */
const textsOf = (...texts: string[]): { type: 'text'; text: string }[] => {
  const [first = '', ...about] = texts
  return [first, ...(about.length > 0 ? [about.join(' ')] : [])].map((text) => ({
    type: 'text' as const,
    text,
  }))
}

function withoutBytes(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!EXACT_FIELDS.some((field) => field in body)) return body
  return Object.fromEntries(Object.entries(body).filter(([name]) => !EXACT_FIELDS.includes(name)))
}

const bytesSentence = (isStructured: boolean): string =>
  isStructured
    ? 'Bytes that are not UTF-8 are shown as U+FFFD; stdoutBase64 and stderrBase64 of the structured content have them exactly.'
    : 'Bytes that are not UTF-8 are shown as U+FFFD; executions_output has them exactly.'

/** Says what was cut, and how the rest is read. */
function cutSentences(
  operationId: string,
  args: Readonly<Record<string, unknown>>,
  body: Readonly<Record<string, unknown>>,
  cuts: readonly Cut[],
): string[] {
  if (cuts.length === 0) return []
  const number = (count: number): string => count.toLocaleString('en-US')
  const said = cuts.slice(0, MOST_NAMED).map(({ field, unit, head, tail, total }) => {
    const what =
      tail === 0 ? `the first ${number(head)}` : `the first ${number(head)} and the last ${number(tail)}`
    const printed = body[`${field}Bytes`]
    const bytes = typeof printed === 'number' ? ` (${number(printed)} bytes were printed)` : ''
    return `${field} has ${what} of ${number(total)} ${unit}${bytes}`
  })
  const rest = restOf(operationId, { args, body, cuts })
  const how =
    rest === null
      ? 'Ask for less to see the rest.'
      : `Read the rest with ${rest.tool} ${JSON.stringify(rest.arguments)}.`
  return [`This result was cut: ${said.join('; ')}. ${how}`]
}
