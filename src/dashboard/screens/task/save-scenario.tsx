import type { ResponseOf } from '../../../client/client.ts'
import { ScenarioDialog } from '../scenarios/scenario-dialog.tsx'
import { useScenarios } from '../scenarios/use-scenarios.ts'

/** A scenario that repeats a task, and what it cannot repeat. */
export type RecordedScenario = ResponseOf<'control.tasks.scenario'>

/** Shows what a task would be as a scenario, to be edited, tried and saved before the others. */
export function SaveScenario({ recorded, onClose }: { recorded: RecordedScenario; onClose: () => void }) {
  const scenarios = useScenarios()
  return (
    <ScenarioDialog
      title="Save as scenario"
      scenario={recorded.scenario}
      index={null}
      scenarios={scenarios}
      notes={recorded.notes}
      onClose={onClose}
    />
  )
}
