import type { ResponseOf } from '../../../route-client/client.ts'
import type { ScenarioText } from './use-scenarios.ts'

type PlannedStep = ResponseOf<'control.scenarios.preview'>['steps'][number]

/** The steps of a scenario, one below the other. */
export const StepList = ({ steps }: { steps: readonly PlannedStep[] }) => (
  <ol class="steps">
    {steps.map(({ kind, path, text, as }, index) => (
      <li key={index}>
        <span class="step-kind">{kind}</span>
        <div>
          {path !== undefined && <code>{path}</code>}
          {text !== '' && <pre>{text}</pre>}
          {as !== undefined && (
            <span class="quiet">
              as <code>{`{{${as}}}`}</code>
            </span>
          )}
        </div>
      </li>
    ))}
  </ol>
)

/** Returns the steps of a scenario as they are written. */
export const writtenSteps = ({ steps }: ScenarioText): PlannedStep[] =>
  (steps as readonly Readonly<Record<string, unknown>>[]).map((step) => {
    const [kind = 'say', value] = Object.entries(step)[0] ?? []
    const text = typeof value === 'string' ? value : value === true ? '' : JSON.stringify(value)
    return { kind: kind as PlannedStep['kind'], text }
  })
