import { useCallback } from 'preact/hooks'
import type { ScenarioText } from '../../../agents/scripted/scenarios.ts'
import type { ResponseOf } from '../../../route-client/client.ts'
import { useDashboard } from '../../dashboard.ts'
import { useLive } from '../../store/use-live.ts'

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

/** A scenario and its source. */
export type ListedScenario = ResponseOf<'control.scenarios.list'>['scenarios'][number]

/** The source of scenarios that the control API has set; others have the path of their file. */
export const CONTROL_SOURCE = 'control'

/** Returns a scenario without its source and its id. */
export const scenarioTextOf = ({ source: _, id: __, ...text }: ListedScenario): ScenarioText => text

/**
 * Returns the position of a scenario, as it was when a person chose it.
 *
 * @throws Error if it is not there any more
 */
export function scenarioPosition(chosen: ScenarioText, index: number, set: readonly ScenarioText[]): number {
  if (JSON.stringify(set[index]) === JSON.stringify(chosen)) return index
  throw new Error(
    'Another client has changed the scenarios meanwhile, so nothing was changed. Close this, and choose the scenario again.',
  )
}

/** The current scenarios, and the function that changes those of the control API. */
export interface ScenarioSet {
  /** In the order in which they are tried; null until they are known. */
  readonly all: readonly ListedScenario[] | Error | null
  /**
   * Replaces the scenarios of the control API in `all` by the result of `change`.
   *
   * @throws ApiFailure without a change, also if another client has set others since `all` was read
   */
  readonly replace: (change: (set: readonly ScenarioText[]) => readonly ScenarioText[]) => Promise<void>
}

/** Loads the scenarios, and follows their changes. */
export function useScenarios(): ScenarioSet {
  const { api } = useDashboard()
  const { value: all, show } = useLive<readonly ListedScenario[]>(
    async () => (await api.call('control.scenarios.list')).scenarios,
    'scenario',
    () => true,
    [api],
  )
  const replace = useCallback<ScenarioSet['replace']>(
    async (change) => {
      const isKnown = all !== null && !(all instanceof Error)
      const known = isKnown ? all : (await api.call('control.scenarios.list')).scenarios
      const expected = known.filter(({ source }) => source === CONTROL_SOURCE).map(scenarioTextOf)
      const body = { scenarios: [...change(expected)], expected }
      show((await api.call('control.scenarios.replace', { body })).scenarios)
    },
    [api, all],
  )
  return { all, replace }
}
