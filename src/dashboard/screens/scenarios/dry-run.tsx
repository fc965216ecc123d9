import { useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { useDashboard } from '../../dashboard.ts'
import { StepList } from './steps.tsx'
import { CONTROL, type ScenarioText } from './use-scenarios.ts'

type Preview = ResponseOf<'control.scenarios.preview'>

/** Properties of a dry run. */
interface DryRunProps {
  /** Returns the scenarios to try in place of those that were set; by default those that hold. */
  scenarios?: (() => readonly ScenarioText[]) | undefined
  /** Called with the position of the scenario that would take the goal, null if none would. */
  onFound?: (index: number | null) => void
  /** Does the look-up, and shows its failure; by default as any failure. */
  attempt?: (work: () => Promise<void>) => Promise<boolean>
}

/** Asks for a goal, and says which scenario would take it with which steps. Nothing is done. */
export function DryRun({ scenarios, onFound, attempt }: DryRunProps) {
  const { api, notices } = useDashboard()
  const [goal, setGoal] = useState('')
  const [preview, setPreview] = useState<Preview | null>(null)
  const look = async (): Promise<void> => {
    const given = scenarios?.()
    const body = { goal, ...(given && { scenarios: [...given] }) }
    const found = await api.call('control.scenarios.preview', { body })
    setPreview(found)
    onFound?.(found.scenario?.index ?? null)
  }
  return (
    <div class="dry-run">
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault()
          void (attempt ?? ((work) => notices.attempt(work)))(look)
        }}
      >
        <input
          type="text"
          required
          aria-label="Goal to try"
          placeholder="A goal, to see what would be done"
          value={goal}
          onInput={({ currentTarget }) => setGoal(currentTarget.value)}
        />
        <Button type="submit" icon="play">
          Try
        </Button>
      </form>
      <div aria-live="polite">{preview && <Found preview={preview} />}</div>
      {preview && scenarios === undefined && (
        <CommandLines
          berth={`berth scenarios preview ${quoted(goal)}`}
          method="POST"
          path="/_berth/scenarios/preview"
          body={{ goal }}
        />
      )}
    </div>
  )
}

/** What would be done about a goal. */
function Found({ preview: { by, scenario, values, steps, problem } }: { preview: Preview }) {
  if (problem !== null) return <p class="notice failure">It would fail at once. {problem}</p>
  if (by === 'nothing')
    return <p class="notice">No scenario matches, and the goal has no directive: nothing would be done.</p>
  const given = Object.entries(values)
  return (
    <div class="notice">
      {scenario === null ? (
        <p>No scenario matches. The goal has its own directives:</p>
      ) : (
        <p>
          <strong>
            <bdi>{scenario.name}</bdi>
          </strong>{' '}
          would take it{' '}
          <span class="quiet">({scenario.source === CONTROL ? 'set here' : scenario.source})</span>
        </p>
      )}
      {given.length > 0 && (
        <dl class="facts">
          {given.map(([name, value]) => (
            <>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>{value === '' ? <span class="quiet">empty</span> : <bdi>{value}</bdi>}</dd>
            </>
          ))}
        </dl>
      )}
      <StepList steps={steps} />
    </div>
  )
}
