import { useEffect, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../api/failure.ts'
import { Button } from '../../components/button.tsx'
import { type ClockState, FAR_MS, useClockMover } from '../../components/clock-move.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { span, Time } from '../../components/time.tsx'
import { timerWords } from '../../components/timer-words.ts'
import { useDashboard } from '../../dashboard.ts'

/** How far a press of a button moves the clock, in milliseconds. */
const STEPS = [
  ['1m', 60_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
  ['30d', 30 * 86_400_000],
] as const

/** Berth's clock: what time it is, what happens next, and the means to get there. */
export function ClockControl() {
  const { api, changes, clock: time, context } = useDashboard()
  const { move, question } = useClockMover()
  const [clock, setClock] = useState<ClockState | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const latest = useRef(0)
  const show = (state: ClockState): void => {
    latest.current += 1
    setClock(state)
    setFailure(null)
    time.set(state)
  }
  const load = async (): Promise<void> => {
    latest.current += 1
    const mine = latest.current
    try {
      const state = await api.call('control.clock.read')
      if (mine === latest.current) show(state)
    } catch (error) {
      if (mine === latest.current) setFailure(new Error(messageOf(error)))
    }
  }
  useEffect(() => {
    void load()
    const ends = [
      changes.subscribe('clock', ({ value }) => show(value as ClockState)),
      // Timers come and go with them. After a reset or a restore all are others.
      changes.subscribe('server', () => void load()),
      changes.subscribe('execution', () => void load()),
      changes.subscribe('terminal', () => void load()),
      changes.onGap(() => void load()),
    ]
    return () => {
      for (const end of ends) end()
    }
  }, [api, changes])
  if (failure) return <Failure error={failure} retry={load} />
  if (!clock) return <Loading />
  // A millisecond may come from the machine's calendar.
  const isAhead = Math.abs(clock.offset_ms) >= 1_000
  const next = clock.next.find(({ id }) => id !== context.session_id)
  const own = clock.next.find(({ id }) => id === context.session_id)
  const nextAt = next === undefined ? 0 : Date.parse(next.at)
  const isNear = nextAt - time.now.value <= FAR_MS
  /** Steers the clock without a question. */
  const steer = async (body: { freeze: boolean } | { reset: true }): Promise<void> =>
    show(await api.call('control.clock.move', { body }))
  return (
    <Section
      title="Clock"
      actions={
        <>
          {STEPS.map(([advance, ms]) => (
            <Button key={advance} onClick={() => move({ advance, ms }, Number.POSITIVE_INFINITY)}>
              +{advance}
            </Button>
          ))}
          <Button onClick={() => steer({ freeze: !clock.frozen })}>
            {clock.frozen ? 'Let it run' : 'Freeze'}
          </Button>
          {(isAhead || clock.frozen) && <Button onClick={() => steer({ reset: true })}>Reset</Button>}
        </>
      }
    >
      <p>
        <code>{new Date(time.now.value).toISOString().slice(0, 19)}Z</code>{' '}
        <span class="quiet">
          {clock.frozen && 'frozen '}
          {isAhead && `${span(clock.offset_ms)} ${clock.offset_ms > 0 ? 'ahead' : 'behind'}`}
        </span>
      </p>
      {clock.next.length === 0 ? (
        <p class="quiet">Nothing waits for its time.</p>
      ) : (
        <>
          {next !== undefined && (
            <p>
              <Button look={isNear ? 'primary' : 'plain'} onClick={() => move({ set: next.at })}>
                Go to the next: {timerWords(next.name)}
              </Button>
              {own !== undefined && Date.parse(own.at) < nextAt && (
                <span class="quiet">
                  {' '}
                  The end of your own session is left out: you would have to sign in again.
                </span>
              )}
            </p>
          )}
          <details>
            <summary>What happens next</summary>
            <table class="plain">
              <thead>
                <tr>
                  <th>When</th>
                  <th>What happens</th>
                  <th>Timer</th>
                </tr>
              </thead>
              <tbody>
                {clock.next.slice(0, 10).map(({ at, name, id }) => (
                  <tr key={`${at} ${name} ${id}`}>
                    <td>
                      <Time at={at} isDue />
                    </td>
                    <td>{timerWords(name)}</td>
                    <td class="quiet">
                      <code>{name}</code> {id !== null && <code>{id}</code>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </details>
        </>
      )}
      <CommandLines
        berth="berth clock advance 1h"
        method="POST"
        path="/_berth/clock"
        body={{ advance: '1h' }}
      />
      {question}
    </Section>
  )
}
