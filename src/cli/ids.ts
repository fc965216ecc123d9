/** Matches a whole id: the prefix of its kind, and a ULID. */
const WHOLE_ID = /^[a-z]+_[0-9a-hjkmnp-tv-z]{26}$/

/** Characters of an id's time (ULID), after the prefix of its kind. */
export const ID_TIME_END = 10

/** Returns an id as people read it: cut after its time. */
export const briefId = (id: string, characters = ID_TIME_END): string =>
  id.slice(0, id.indexOf('_') + 1 + characters)

/** Reports whether a text is a whole id, which needs no look-up. */
export const isWholeId = (given: string): boolean => WHOLE_ID.test(given)
