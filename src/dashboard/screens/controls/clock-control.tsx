import { useEffect, useRef, useState } from 'preact/hooks'
import type { PartsOf, ResponseOf } from '../../../client/client.ts'
import { messageOf } from '../../api/failure.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { span, Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'

type ClockState = ResponseOf<'control.clock.read'>

type ClockMove = NonNullable<PartsOf<'control.clock.move'>['body']>

const DAY_MS = 86_400_000

/** How far a press of a button moves the clock, in milliseconds. */
const STEPS = [
  ['1m', 60_000],
  ['1h', 3_600_000],
  ['1d', DAY_MS],
  ['30d', 30 * DAY_MS],
] as const

/** Berth's clock: what time it is, what happens next, and the means to get there. */
export function ClockControl() {
  const { api, changes, clock: time } = useDashboard()
  const [clock, setClock] = useState<ClockState | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  /** The session of this browser; null while it is not known. */
  const [sessionId, setSessionId] = useState<string | null>(null)
  const [asked, setAsked] = useState<{ at: number; body: ClockMove } | null>(null)
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
    const loadSession = async (): Promise<void> => {
      const { browsers } = await api.call('browsers.list')
      setSessionId(browsers.find((browser) => browser.is_current)?.id ?? null)
    }
    // Without it, the end of each session counts as that of this one.
    loadSession().catch(() => {})
    const ends = [
      changes.subscribe('clock', ({ value }) => show(value as ClockState)),
      // Timers come and go with them. After a reset or a restore all are others.
      changes.subscribe('server', () => void load()),
      changes.subscribe('terminal', () => void load()),
      changes.onGap(() => void load()),
    ]
    return () => {
      for (const end of ends) end()
    }
  }, [api, changes])
  if (failure) return <Failure error={failure} retry={load} />
  if (!clock) return <Loading />
  const move = async (body: ClockMove): Promise<void> => show(await api.call('control.clock.move', { body }))
  const isMoved = clock.offset_ms !== 0 || clock.frozen
  const isOwnEnd = ({ name, id }: ClockState['next'][number]): boolean =>
    name === 'session.end' && (sessionId === null || id === sessionId)
  const sessionEnd = clock.next.find(isOwnEnd)
  const endsSession = (at: number): boolean => sessionEnd !== undefined && at >= Date.parse(sessionEnd.at)
  const next = clock.next.find((timer) => !isOwnEnd(timer))
  const nextAt = next === undefined ? 0 : Date.parse(next.at)
  const isNear = !endsSession(nextAt) && nextAt - time.now.value <= DAY_MS
  return (
    <Section
      title="Clock"
      actions={
        <>
          {STEPS.map(([advance, ms]) => (
            <Button
              key={advance}
              onClick={() => {
                const at = time.read() + ms
                return endsSession(at) ? setAsked({ at, body: { advance } }) : move({ advance })
              }}
            >
              +{advance}
            </Button>
          ))}
          <Button onClick={() => move({ freeze: !clock.frozen })}>
            {clock.frozen ? 'Let it run' : 'Freeze'}
          </Button>
          {isMoved && <Button onClick={() => move({ reset: true })}>Reset</Button>}
        </>
      }
    >
      <p>
        <code>{new Date(time.now.value).toISOString().slice(0, 19)}Z</code>{' '}
        <span class="quiet">
          {clock.frozen && 'frozen '}
          {clock.offset_ms !== 0 && `${span(clock.offset_ms)} ${clock.offset_ms > 0 ? 'ahead' : 'behind'}`}
        </span>
      </p>
      {clock.next.length === 0 ? (
        <p class="quiet">Nothing waits for its time.</p>
      ) : (
        <>
          {next !== undefined && (
            <p>
              <Button
                look={isNear ? 'primary' : 'plain'}
                onClick={() =>
                  isNear ? move({ set: next.at }) : setAsked({ at: nextAt, body: { set: next.at } })
                }
              >
                Go to the next: {next.name}
                {!isNear && ' …'}
              </Button>
            </p>
          )}
          <table class="plain">
            <thead>
              <tr>
                <th>Next</th>
                <th>What happens</th>
                <th>To</th>
              </tr>
            </thead>
            <tbody>
              {clock.next.slice(0, 10).map(({ at, name, id }) => (
                <tr key={`${at} ${name} ${id}`}>
                  <td>
                    <Time at={at} />
                  </td>
                  <td>{name}</td>
                  <td>{id !== null && <code>{id}</code>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      <CommandLines
        berth="berth clock advance 1h"
        method="POST"
        path="/_berth/clock"
        body={{ advance: '1h' }}
      />
      {asked !== null && (
        <MoveFar
          ms={asked.at - time.now.value}
          passed={clock.next.filter((timer) => !isOwnEnd(timer) && Date.parse(timer.at) < asked.at)}
          endsSession={endsSession(asked.at)}
          onConfirm={() => move(asked.body)}
          onClose={() => setAsked(null)}
        />
      )}
    </Section>
  )
}

/** Asks before the clock is moved far, and says what happens on the way. */
function MoveFar({
  ms,
  passed,
  endsSession,
  ...actions
}: {
  ms: number
  passed: ClockState['next']
  endsSession: boolean
  onConfirm: () => Promise<unknown>
  onClose: () => void
}) {
  const names = [...new Set(passed.map(({ name }) => name))]
  return (
    <Confirm title={`Move the clock by ${span(ms)}?`} action="Move the clock" {...actions}>
      <ul>
        {endsSession && (
          <li>
            This browser's session ends on the way: sign in again with <code>berth open</code>, or the link of{' '}
            <code>berth open --print</code>.
          </li>
        )}
        <li>Running servers are charged for {span(ms)}.</li>
        {names.length > 0 && <li>On the way: {names.join(', ')}.</li>}
      </ul>
    </Confirm>
  )
}
