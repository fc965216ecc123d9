import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { CommandLines } from '../../components/command-lines.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'
import { EFFECTS, type FaultCreate, faultLine, isForDeliveries, type OfferedEffect } from './effects.ts'

/** Which requests a fault is for. */
export type FaultMatch = FaultCreate['match']

const TIMES = [
  { label: 'once', times: 1 },
  { label: '3 times', times: 3 },
  { label: 'each time', times: undefined },
] as const

/** Properties of the question for a fault. */
interface FaultDialogProps {
  title: string
  match: FaultMatch
  /** What is offered; `EFFECTS` if it is missing. */
  effects?: readonly OfferedEffect[]
  /** The effect to begin with, by its place among those that are offered. */
  initial: number
  /** How the match is chosen. */
  children: ComponentChildren
  onClose: () => void
}

/** Asks how requests are to fail and how often, and sets that fault. */
export function FaultDialog({
  title,
  match,
  effects = EFFECTS,
  initial,
  children,
  onClose,
}: FaultDialogProps) {
  const { api, notices, store } = useDashboard()
  const [chosen, setChosen] = useState(initial)
  const [often, setOften] = useState(0)
  const effect = effects[chosen] ?? effects[0]
  const times = TIMES[often]?.times
  if (!effect) return null
  const body: FaultCreate = { match, effect: effect.effect, ...(times !== undefined && { times }) }
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
      isDisabled={match.deliveries !== undefined && !isForDeliveries(effect.effect)}
      onClose={onClose}
      commands={<FaultLines fault={body} />}
    >
      {children}
      <fieldset class="choice column">
        <legend>What happens to them</legend>
        {effects.map(
          ({ label, effect: one }, index) =>
            (match.deliveries === undefined || isForDeliveries(one)) && (
              <label key={label}>
                <input
                  type="radio"
                  name="effect"
                  checked={chosen === index}
                  onChange={() => setChosen(index)}
                />
                {label}
              </label>
            ),
        )}
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

/** Shows a fault as JSON, and the lines that set it. */
const FaultLines = ({ fault }: { fault: FaultCreate }) => (
  <>
    <details class="command-lines">
      <summary>The fault as JSON</summary>
      <div class="line">
        <code>{JSON.stringify(fault, null, 2)}</code>
        <CopyButton text={JSON.stringify(fault, null, 2)} label="Copy the JSON" />
      </div>
    </details>
    <CommandLines berth={faultLine(fault)} method="POST" path="/_berth/faults" body={fault} />
  </>
)
