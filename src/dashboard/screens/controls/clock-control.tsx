import { useEffect, useState } from 'preact/hooks'
import type { PartsOf, ResponseOf } from '../../../client/client.ts'
import { messageOf } from '../../api/failure.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { span, Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'

type ClockState = ResponseOf<'control.clock.read'>

/** How far a press of a button moves the clock. */
const STEPS = ['1m', '1h', '1d', '30d'] as const

/** Berth's clock: what time it is, what happens next, and the means to get there. */
export function ClockControl() {
  const { api, changes } = useDashboard()
  const [clock, setClock] = useState<ClockState | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const load = (): Promise<void> =>
    api.call('control.clock.read').then(setClock, (error: unknown) => setFailure(new Error(messageOf(error))))
  useEffect(() => {
    void load()
    return changes.subscribe('clock', ({ value }) => setClock(value as ClockState))
  }, [api, changes])
  const move = async (body: NonNullable<PartsOf<'control.clock.move'>['body']>): Promise<void> => {
    setClock(await api.call('control.clock.move', { body }))
  }
  if (failure) return <Failure error={failure} retry={load} />
  if (!clock) return <Loading />
  const isMoved = clock.offset_ms !== 0 || clock.frozen
  // Not to the end of a session, which may be the one of this browser.
  const next = clock.next.find(({ name }) => name !== 'session.end')
  return (
    <Section
      title="Clock"
      actions={
        <>
          {STEPS.map((step) => (
            <Button key={step} onClick={() => move({ advance: step })}>
              +{step}
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
        <code>{clock.now}</code>{' '}
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
              <Button look="primary" onClick={() => move({ set: next.at })}>
                Go to the next: {next.name}
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
    </Section>
  )
}
