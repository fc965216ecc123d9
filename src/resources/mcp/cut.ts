import { isObject } from '../../runtime/is-object.ts'

/** Longest text in an element of an array that is cut, if the array alone is too large. @bound reader */
const MOST_IN_ELEMENT = 4_000

/** Characters for which a cut text or list has to have room, so that something of it is left. */
const LEAST = 200

/** Characters for the sentence in the place of what was left out. */
const MARK = 60

/** What was cut: a field, what is left of it, and what it had. */
export interface Cut {
  /** Such as `stdout`. */
  readonly field: string
  readonly unit: 'characters' | 'items'
  readonly head: number
  readonly tail: number
  readonly total: number
}

/** A value that fits, and what was cut of it. */
export interface CutValue {
  readonly value: Readonly<Record<string, unknown>>
  readonly cuts: readonly Cut[]
}

/** How a list is cut: from its middle, or from its end where the rest is read from there. */
export type ListCut = 'middle' | 'end'

/** Returns the characters that a value takes in the message to the client. */
export type SizeOf = (value: unknown) => number

/** The size of structured content. */
export const sizeAsJson: SizeOf = (value) => (JSON.stringify(value) ?? '').length

/** The size of JSON in a text, in which its quotation marks and escapes are escaped once more. */
export const sizeAsText: SizeOf = (value) => JSON.stringify(JSON.stringify(value) ?? '').length

/**
 * Cuts the longest texts and lists of a value, so that it takes at most `limit` characters: of each the beginning and the
 * end are left. Fields keep their types.
 */
export function cutToFit(
  value: Readonly<Record<string, unknown>>,
  limit: number,
  lists: ListCut,
  sizeOf: SizeOf,
): CutValue {
  const cuts: Cut[] = []
  const copy = structuredClone(value) as Record<string, unknown>
  const places = placesIn(copy)
  const share = shareOf(
    places.map(({ holder, key }) => sizeOf(holder[key])),
    limit - sizeOf(copy),
  )
  for (const { holder, key, field } of places) {
    const whole = holder[key]
    if (sizeOf(whole) <= share) continue
    if (typeof whole === 'string') {
      const { text, head, tail } = cutText(whole, share, sizeOf)
      holder[key] = text
      cuts.push({ field, unit: 'characters', head, tail, total: whole.length })
    } else if (Array.isArray(whole)) {
      const list = whole.map(shortened)
      const { items, head, tail } = cutList(list, share, lists, sizeOf)
      holder[key] = items
      if (head + tail < list.length) cuts.push({ field, unit: 'items', head, tail, total: list.length })
    }
  }
  return { value: copy, cuts }
}

/** A text or a list of an object. */
interface Place {
  readonly holder: Record<string, unknown>
  readonly key: string
  readonly field: string
}

/** Returns the texts and lists in an object and the objects in it. */
function placesIn(holder: Record<string, unknown>, prefix = ''): Place[] {
  return Object.entries(holder).flatMap(([key, value]): Place[] => {
    if (isObject(value)) return placesIn(value, `${prefix}${key}.`)
    return typeof value === 'string' || Array.isArray(value)
      ? [{ holder, key, field: `${prefix}${key}` }]
      : []
  })
}

/** Returns the largest share that each of several sizes may have, so that together they have `excess` less. */
function shareOf(sizes: readonly number[], room: number): number {
  if (room >= 0) return Number.POSITIVE_INFINITY
  let left = sizes.reduce((sum, size) => sum + size, 0) + room
  const ascending = [...sizes].sort((a, b) => a - b)
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index))
    if (size > share) return Math.max(LEAST, share)
    left -= size
  }
  return LEAST
}

/** Cuts a text so that it takes at most `limit` characters, the sentence in its middle included. */
function cutText(text: string, limit: number, sizeOf: SizeOf): { text: string; head: number; tail: number } {
  for (let kept = Math.min(text.length, Math.max(0, limit - MARK)); ; kept = Math.floor(kept * 0.9)) {
    const head = text.slice(0, Math.ceil(kept / 2)).replace(/[\ud800-\udbff]$/, '')
    const tail = text.slice(text.length - Math.floor(kept / 2)).replace(/^[\udc00-\udfff]/, '')
    const out = text.length - head.length - tail.length
    const cut = `${head}\n[… ${out} characters left out …]\n${tail}`
    if (sizeOf(cut) <= limit || kept < 2) return { text: cut, head: head.length, tail: tail.length }
  }
}

function cutList(list: readonly unknown[], limit: number, lists: ListCut, sizeOf: SizeOf) {
  const sizes = list.map((item) => sizeOf(item) + 1)
  let [head, tail, used] = [0, 0, 2]
  const fits = (size: number | undefined): boolean => size !== undefined && used + size <= limit
  while (head + tail < list.length) {
    const fromHead = lists === 'end' || head <= tail
    const size = fromHead ? sizes[head] : sizes[list.length - 1 - tail]
    if (!fits(size)) break
    used += size ?? 0
    if (fromHead) head += 1
    else tail += 1
  }
  return { items: [...list.slice(0, head), ...list.slice(list.length - tail)], head, tail }
}

/** Cuts the long texts of an element of a list. What is cut says so itself. */
function shortened(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length <= MOST_IN_ELEMENT ? value : cutText(value, MOST_IN_ELEMENT, sizeAsJson).text
  if (Array.isArray(value)) return value.map(shortened)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shortened(one)]))
}
