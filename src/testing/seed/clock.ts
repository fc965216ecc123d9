import { type ClockOptions, machineNow } from '../../runtime/clock.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { MAX_TIME, parseIso } from '../../runtime/iso-time.ts'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'

/** The clock section of a fixtures file. */
export interface ClockFixture {
  /** Whether the clock is frozen. */
  readonly freeze: boolean
  /** The moment that it begins with, milliseconds since 1970; null for the machine's. */
  readonly set: number | null
  /** Milliseconds that pass when everything is there. */
  readonly advance: number
}

/**
 * Reads the clock section, whose shape has been checked.
 *
 * @throws ValidationError
 */
export function readClock(given: JsonReader): ClockFixture {
  const freeze = given.field('freeze')
  const set = given.field('set')
  const advance = given.field('advance')
  const at = set ? parseIso(set.text()) : null
  if (set && at === null) {
    throw set.error('an ISO 8601 time from 1970 on, such as 2030-01-01T00:00:00Z')
  }
  const by = advance ? parseDuration(advance.text()) : 0
  if (by === null) throw (advance ?? given).error('a duration such as 500ms, 90s, 15m, 2h or 30d')
  if ((at ?? machineNow()) + by > MAX_TIME) {
    throw new ValidationError(advance?.path ?? given.path, 'expected a time before the year 10000.')
  }
  return { freeze: freeze?.value === true, set: at, advance: by }
}

/**
 * Returns a clock's options. `--freeze` overrides the file.
 *
 * @param frozenAt the time of `--freeze`, milliseconds since 1970
 */
export function clockStart(frozenAt: number | null, clock: ClockFixture | null): ClockOptions {
  if (frozenAt !== null || clock === null) return { frozenAt }
  const { freeze, set } = clock
  return freeze ? { frozenAt: set ?? machineNow() } : { startAt: set }
}
