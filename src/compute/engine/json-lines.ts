import { fieldsOf } from '../../runtime/is-object.ts'

/** Characters of a line at most. @bound system */
const MAX_LINE = 4 * 2 ** 20

/** Yields the JSON objects of a response that has one a line, as they come. */
export async function* jsonLines({ body }: Response): AsyncGenerator<Record<string, unknown>> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE) throw new Error('an event is too long')
    for (const line of lines) if (line.trim() !== '') yield fieldsOf(JSON.parse(line))
  }
}
