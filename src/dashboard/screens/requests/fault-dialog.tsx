import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { PartsOf } from '../../../client/client.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'

type FaultCreate = PartsOf<'control.faults.add'>['body']

/** Which requests a fault is for. */
export type FaultMatch = FaultCreate['match']

/** What a fault may do. */
export const EFFECTS: readonly { label: string; effect: FaultCreate['effect']; flag: string }[] = [
  { label: '429 too many requests', effect: { error: { status: 429 } }, flag: '--error 429' },
  { label: '500 internal error', effect: { error: { status: 500 } }, flag: '--error 500' },
  { label: '502 bad gateway', effect: { error: { status: 502 } }, flag: '--error 502' },
  { label: '503 unavailable', effect: { error: { status: 503 } }, flag: '--error 503' },
  { label: 'Slow: 5 s later', effect: { delay_ms: 5_000 }, flag: '--delay 5s' },
  { label: 'Cut off: no response', effect: { disconnect: true }, flag: '--disconnect' },
  { label: 'Compute fails', effect: { backend: 'fail' }, flag: '--backend-fail' },
]

const TIMES = [
  { label: 'once', times: 1 },
  { label: '3 times', times: 3 },
  { label: 'each time', times: undefined },
] as const

/** Properties of the question for a fault. */
interface FaultDialogProps {
  title: string
  match: FaultMatch
  /** The effect to begin with, by its place in `EFFECTS`. */
  initial: number
  /** How the match is chosen. */
  children: ComponentChildren
  onClose: () => void
}

/** Asks how requests are to fail and how often, and sets that fault. */
export function FaultDialog({ title, match, initial, children, onClose }: FaultDialogProps) {
  const { api, notices, store } = useDashboard()
  const [chosen, setChosen] = useState(initial)
  const [often, setOften] = useState(0)
  const effect = EFFECTS[chosen] ?? EFFECTS[0]
  const times = TIMES[often]?.times
  if (!effect) return null
  const body: FaultCreate = { match, effect: effect.effect, ...(times !== undefined && { times }) }
  const words = [
    'berth faults add',
    ...wordsOf(match),
    effect.flag,
    ...(times === undefined ? [] : ['--times', String(times)]),
  ]
  const set = async (): Promise<void> => {
    const fault = await api.call('control.faults.add', { body })
    store.faults.add(fault)
    notices.done('The fault is set.', {
      label: 'Remove it',
      run: () =>
        void notices.attempt(async () => {
          await api.call('control.faults.delete', { params: { faultId: fault.id } })
          store.faults.remove(fault.id)
        }),
    })
  }
  return (
    <FormDialog
      title={title}
      action="Set the fault"
      onSubmit={set}
      onClose={onClose}
      commands={<CommandLines berth={words.join(' ')} method="POST" path="/_berth/faults" body={body} />}
    >
      {children}
      <fieldset class="choice column">
        <legend>What happens to them</legend>
        {EFFECTS.map(({ label }, index) => (
          <label key={label}>
            <input type="radio" name="effect" checked={chosen === index} onChange={() => setChosen(index)} />
            {label}
          </label>
        ))}
      </fieldset>
      <fieldset class="choice">
        <legend>How often</legend>
        {TIMES.map(({ label }, index) => (
          <label key={label}>
            <input type="radio" name="times" checked={often === index} onChange={() => setOften(index)} />
            {label}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}

/** Returns the words of the command line for a match. */
const wordsOf = ({ operation, method, path, account_id: account, client }: FaultMatch): string[] =>
  [
    ['--operation', operation],
    ['--method', method],
    ['--path', path && quoted(path)],
    ['--account', account],
    ['--client', client],
  ].flatMap(([flag, value]) => (flag === undefined || value === undefined ? [] : [flag, value]))
