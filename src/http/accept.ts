/** A media range of an Accept header with its weight (RFC 9110, 12.5.1). */
interface MediaRange {
  readonly range: string
  readonly weight: number
}

/** The media type of the response that an operation has besides its streams. */
const JSON_TYPE = 'application/json'

/**
 * Returns the stream that a client wants in place of JSON: of those that its Accept header names, the one with the
 * greatest weight, the first of several. Null if JSON is accepted at least as much, or none of them is accepted.
 *
 * A wildcard such as `text/*` accepts JSON or nothing, as a client that knows of no stream sends it.
 *
 * @param streams media types that the operation can stream, in lower case
 */
export function streamInstead<Type extends string>(
  accept: string | undefined | null,
  streams: readonly Type[],
): Type | null {
  if (!accept) return null
  const ranges = rangesOf(accept)
  let best: { type: Type | null; weight: number } = { type: null, weight: weightOf(ranges, JSON_TYPE) }
  for (const type of streams) {
    const weight = ranges.find(({ range }) => range === type)?.weight ?? 0
    if (weight > best.weight) best = { type, weight }
  }
  return best.type
}

/**
 * Reports whether a media type is accepted, by itself or by a wildcard. Without an Accept header every type is
 * (RFC 9110, 12.5.1).
 */
export const isAccepted = (accept: string | null, type: string): boolean =>
  accept === null || weightOf(rangesOf(accept), type) > 0

/** Returns the weight of a type: that of the most specific range that has it, 0 if none has. */
function weightOf(ranges: readonly MediaRange[], type: string): number {
  for (const one of [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*']) {
    const found = ranges.find(({ range }) => range === one)
    if (found) return found.weight
  }
  return 0
}

/** Matches a member of a list whose quoted strings may hold commas (RFC 9110, 5.6.1). */
const MEMBER = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g

/** Matches a weight: a number from 0 to 1. Another one counts as left out. */
const WEIGHT = /;\s*q\s*=\s*(0(?:\.\d*)?|1(?:\.0*)?)\s*(?:;|$)/i

/** Reads an Accept header. Parameters other than the weight are ignored, as no type here has any. */
function rangesOf(accept: string): MediaRange[] {
  return (accept.match(MEMBER) ?? []).map((member) => {
    const [range = ''] = member.split(';', 1)
    return { range: range.trim().toLowerCase(), weight: Number(WEIGHT.exec(member)?.[1] ?? 1) }
  })
}
