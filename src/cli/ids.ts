/** Matches a whole id: the prefix of its kind, and a ULID. */
const WHOLE_ID = /^[a-z]+_[0-9a-hjkmnp-tv-z]{26}$/

/** Characters of an id's time (ULID), after the prefix of its kind. */
export const ID_TIME_END = 10

/** Returns an id as people read it: cut after its time. */
export const briefId = (id: string, characters = ID_TIME_END): string =>
  id.slice(0, id.indexOf('_') + 1 + characters)

/** Reports whether a text is a whole id, which needs no look-up. */
export const isWholeId = (given: string): boolean => WHOLE_ID.test(given)

/** The digits of an id's time (Crockford's base 32). */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'

/** Returns when a thing was made, in milliseconds since 1970, which its id begins with; null if it is no such id. */
export function madeAt(id: string): number | null {
  if (!isWholeId(id)) return null
  const digits = id.slice(id.indexOf('_') + 1).slice(0, ID_TIME_END)
  return [...digits].reduce((time, digit) => time * DIGITS.length + DIGITS.indexOf(digit), 0)
}
