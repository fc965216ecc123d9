import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../../runtime/error-info.ts'
import { Button } from '../../components/button.tsx'
import { type ClockReading, FAR_MS, timerWords, useClockMover } from '../../components/clock-move.tsx'
import { Id } from '../../components/copy.tsx'
import { FormDialog, ShownOnce } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { Failure, Loaded, Loading, ScreenPage, Section, Tabs } from '../../components/page.tsx'
import { span, Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../router.ts'
import { FaultControls } from './faults.tsx'
import { ScenarioControls } from './scenarios.tsx'
import { StateControls } from './snapshots.tsx'

/** A part of the screen. */
interface Part {
  /** The last segment of its address. */
  readonly tab: string
  readonly label: string
  readonly Content: ComponentType
}

/** The parts, in order. */
const PARTS: readonly Part[] = [
  { tab: 'faults', label: 'Faults', Content: FaultControls },
  { tab: 'clock', label: 'Clock', Content: ClockControl },
  { tab: 'state', label: 'State', Content: StateControls },
  { tab: 'scenarios', label: 'Scenarios', Content: ScenarioControls },
  { tab: 'accounts', label: 'Accounts', Content: Accounts },
]

const BASE = '/dashboard/controls'

/** What tests steer: faults, the clock, snapshots of the whole state, scenarios and accounts, together or one of them. */
export default function ControlsScreen({ params: { tab = '' } }: ScreenProps) {
  const { store } = useDashboard()
  const faults = store.faults.open().list.value.length
  const chosen = PARTS.find((part) => part.tab === tab)
  return (
    <ScreenPage title="Test controls">
      <Tabs
        label="Test controls"
        here={chosen ? `${BASE}/${tab}` : BASE}
        tabs={[
          { href: BASE, label: 'All' },
          ...PARTS.map(({ tab: segment, label }) => ({
            href: `${BASE}/${segment}`,
            label,
            count: segment === 'faults' ? faults : undefined,
          })),
        ]}
      />
      <div class="controls">
        {(chosen ? [chosen] : PARTS).map(({ tab: segment, Content }) => (
          <Content key={segment} />
        ))}
      </div>
    </ScreenPage>
  )
}

/** How far a press of a button moves the clock, in milliseconds. */
const STEPS = [
  ['1m', 60_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
  ['30d', 30 * 86_400_000],
] as const

/** Berth's clock: the time, the next timers, and the buttons that move it to them. */
function ClockControl() {
  const { api, changes, clock: time, context } = useDashboard()
  const { move, question } = useClockMover()
  const [clock, setClock] = useState<ClockReading | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const latest = useRef(0)
  const show = (state: ClockReading): void => {
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
      changes.subscribe('clock', ({ value }) => show(value as ClockReading)),
      // Their timers begin and end with them. A reset or a restore replaces all timers.
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
  // The machine's calendar may add a millisecond.
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

/** The accounts of the instance: tests that run side by side have one each. */
function Accounts() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const [key, setKey] = useState<string | null>(null)
  return (
    <Section
      title="Accounts"
      actions={
        <Button icon="plus" onClick={() => setCreating(true)}>
          Create an account
        </Button>
      }
    >
      <Loaded of={store.accounts}>
        {(accounts) => (
          <ul class="cards">
            {accounts.map(({ id, label }) => (
              <li class="card" key={id}>
                <div class="card-main">
                  <p>
                    <strong>
                      <bdi>{label || 'without a label'}</bdi>
                    </strong>{' '}
                    <Id id={id} />
                  </p>
                </div>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {isCreating && <CreateAccount onCreated={setKey} onClose={() => setCreating(false)} />}
      {key !== null && (
        <ShownOnce
          title="The key of the account"
          about="It reaches the whole account, and is shown this once."
          text={key}
          onClose={() => setKey(null)}
        />
      )}
    </Section>
  )
}

/** Asks for the name of an account, and creates it. */
function CreateAccount({ onCreated, onClose }: { onCreated: (key: string) => void; onClose: () => void }) {
  const { api, store } = useDashboard()
  const [label, setLabel] = useState('')
  const body = label === '' ? {} : { label }
  return (
    <FormDialog
      title="Create an account"
      action="Create"
      onSubmit={async () => {
        onCreated((await api.call('control.accounts.create', { body })).api_key)
        await store.accounts.load()
      }}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth accounts create${label === '' ? '' : ` --label ${shellQuoted(label)}`}`}
          method="POST"
          path="/_berth/accounts"
          body={body}
        />
      }
    >
      <TextField
        name="label"
        label="Label"
        value={label}
        onValue={setLabel}
        placeholder="worker 1"
        maxLength={100}
        hint="Tells the accounts apart."
      />
    </FormDialog>
  )
}
