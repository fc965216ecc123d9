/** Matches the month and the day of a date that each year has, or of one that leap years have alone. */
const EACH_YEAR =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))'
const LEAP_DAY =
  '(?:19(?:[79][26]|8[048])|[2-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[3579][26])00)-02-29'

/** Matches an hour and a minute. */
const MINUTE = '(?:[01][0-9]|2[0-3]):[0-5][0-9]'

/**
 * Matches an ISO 8601 time from 1970 on: a date, optionally with a time of day and its offset from UTC. The day exists,
 * since Date.parse takes the 30th of February for the 2nd of March.
 */
export const ISO_TIME = [
  `^(?:(?:19[7-9][0-9]|[2-9][0-9]{3})-${EACH_YEAR}|${LEAP_DAY})`,
  `(?:T${MINUTE}(?::[0-5][0-9](?:\\.[0-9]+)?)?(?:Z|[+-]${MINUTE}))?$`,
].join('')

const isoTime = new RegExp(ISO_TIME)

/** The last moment that an ISO 8601 time of four digits for the year can name. @bound system */
export const MAX_TIME = Date.UTC(10_000, 0, 1) - 1

/** Reads an ISO 8601 time: milliseconds since 1970, or null if it is none, is before that or its day does not exist. */
export function parseIso(text: string): number | null {
  const at = isoTime.test(text) ? Date.parse(text) : -1
  return at < 0 ? null : at
}
