/** Characters of a result that a model is given. */
const MOST_GIVEN = 24_000

/** The beginning and the end of a text that is too long. */
export function bounded(text: string, most: number = MOST_GIVEN): string {
  if (text.length <= most) return text
  const head = Math.floor((most * 2) / 3)
  const omitted = text.length - most
  return `${text.slice(0, head)}\n… (${omitted} characters are left out here)\n${text.slice(head + omitted)}`
}

/**
 * Some lines of a file, as many as may be given, and which ones where that is not all.
 *
 * @param first counts from 1
 * @param last included; without it to the end
 * @param isCut the file goes on after `content`
 */
export function linesOf(content: string, first: number, last: number | undefined, isCut: boolean): string {
  const lines = content.replace(/\n$/, '').split('\n')
  const wanted = lines.slice(first - 1, last)
  const given: string[] = []
  let room = MOST_GIVEN
  for (const line of wanted) {
    room -= line.length + 1
    if (room < 0) break
    given.push(line)
  }
  const total = isCut ? `${lines.length}, and more that only run can show` : `${lines.length}`
  if (wanted.length === 0) return `(there is no such line: the file has ${total})`
  // Not even one line fits.
  if (given.length === 0) return bounded(wanted.join('\n'))
  if (given.length === lines.length && !isCut) return content
  return `${given.join('\n')}\n(lines ${first} to ${first - 1 + given.length} of ${total})`
}
