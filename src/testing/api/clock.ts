import { Elysia, type Static, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { integer, notTogether } from '../../contract/schema.ts'
import { badRequest } from '../../errors.ts'
import { type SteerableClock, toIso } from '../../runtime/clock.ts'
import { DURATION_UNITS, parseDuration } from '../../runtime/duration.ts'
import { ISO_TIME, MAX_TIME, parseIso } from '../../runtime/iso-time.ts'
import type { ControlParts } from './parts.ts'

/** Timers that are listed. @bound reader */
const MOST_LISTED = 50

/** A timer that waits. */
const ClockTimer = t.Object(
  {
    at: t.String({ format: 'date-time', description: 'When it is due.' }),
    name: t.String({
      description: 'What happens then: `server.sleep`, `delivery.retry`, `session.end` and others.',
    }),
    id: t.Nullable(t.String(), { description: 'What it happens to.' }),
  },
  { $id: 'ClockTimer' },
)

export const ShownClock = t.Object(
  {
    now: t.String({ format: 'date-time' }),
    frozen: t.Boolean({ description: 'Whether it stands until it is moved.' }),
    offset_ms: integer({ description: "How far it is ahead of the machine's calendar." }),
    timers: integer({ description: 'How many calls wait for their time.' }),
    next: t.Array(ClockTimer, {
      description: `What happens next if time passes, the soonest first; at most ${MOST_LISTED}.`,
    }),
  },
  { $id: 'Clock' },
)
export type ShownClock = Static<typeof ShownClock>

const ClockMove = t.Object(
  {
    advance: t.Optional(
      t.String({
        pattern: `^\\s*[0-9]+(?:\\.[0-9]+)?(?:${DURATION_UNITS})?\\s*$`,
        title: 'a duration such as 500ms, 90s, 15m, 2h or 30d',
        description: 'A duration such as 90s, 15m, 2h or 30d: all that falls due in it runs, in order.',
        examples: ['2h'],
      }),
    ),
    set: t.Optional(
      t.String({
        pattern: ISO_TIME,
        title: 'an ISO 8601 time from 1970 on, such as 2030-01-01T00:00:00Z',
        description:
          'An ISO 8601 time. A later one is reached as by `advance`; to an earlier one the calendar alone is moved.',
        examples: ['2030-01-01T00:00:00Z'],
      }),
    ),
    freeze: t.Optional(t.Boolean({ description: 'Whether it stands from now on.' })),
    reset: t.Optional(
      t.Literal(true, {
        description: "Alone: back to the machine's time, or to where it stood at the start.",
      }),
    ),
  },
  {
    $id: 'ClockMove',
    additionalProperties: false,
    minProperties: 1,
    title: '"advance", "set", "freeze" or "reset"',
    ...notTogether(['advance', 'set'], ['reset', 'advance'], ['reset', 'set'], ['reset', 'freeze']),
  },
)

/** `/_berth/clock`: the clock that metering, expiry, retries, idle timeout and months go by. */
export const clockRoutes = ({ access, services: { clock, changes } }: ControlParts) =>
  new Elysia({ prefix: '/_berth/clock' })
    .use(access)
    .get(
      '',
      () => clockState(clock),
      operation('control.clock.read', {
        access: 'admin',
        summary: 'What time it is',
        description:
          'Reads the clock of metering, expiry, retries and the idle timeout, and says whether it is frozen.',
        success: { 200: ShownClock },
      }),
    )
    .post(
      '',
      async ({ body }) => {
        try {
          await move(clock, body)
        } finally {
          changes.notify('clock', 'clock', null)
        }
        return clockState(clock)
      },
      operation(
        'control.clock.move',
        {
          access: 'admin',
          summary: 'Move, stop, start or reset the clock',
          description:
            '`set` and `advance` exclude each other, and `reset` excludes all others. The response comes when everything that fell due is done.',
          success: { 200: ShownClock },
        },
        { body: ClockMove },
      ),
    )

/** Returns the clock as the control API shows it. */
export const clockState = (clock: SteerableClock): ShownClock => ({
  now: toIso(clock.now()),
  frozen: clock.frozen,
  offset_ms: Math.round(clock.offset),
  timers: clock.pending,
  next: clock.next(MOST_LISTED).map(({ at, name, id }) => ({ at: toIso(at), name, id })),
})

/**
 * Moves the clock, after the whole body has been checked.
 *
 * @throws BerthError 400
 */
async function move(clock: SteerableClock, body: Static<typeof ClockMove>): Promise<void> {
  const { advance, set, freeze, reset } = body
  const fields = Object.keys(body)
  if (reset && fields.length > 1)
    throw badRequest('"reset" in the body stands alone: it undoes all the others.')
  if (advance !== undefined && set !== undefined) {
    throw badRequest('"advance" and "set" in the body exclude each other: give the way or the end of it.')
  }
  const by = advance === undefined ? null : durationOf(advance, MAX_TIME - clock.now())
  const to = set === undefined ? null : timeOf(set)
  if (reset) return clock.reset()
  if (freeze === true) await clock.freeze()
  if (by !== null) await clock.advance(by)
  if (to !== null) await clock.set(to)
  if (freeze === false) await clock.unfreeze()
}

function durationOf(text: string, longest: number): number {
  const ms = parseDuration(text) ?? Infinity
  if (ms > longest) throw badRequest('"advance" in the body: expected a time before the year 10000.')
  return ms
}

/** @throws BerthError 400 for the first and the last hours that the schema takes, with an offset beyond its years */
function timeOf(text: string): number {
  const at = parseIso(text)
  if (at !== null && at <= MAX_TIME) return at
  throw badRequest('"set" in the body: expected a time from 1970 on and before the year 10000.')
}
