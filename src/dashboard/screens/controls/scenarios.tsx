import { useState } from 'preact/hooks'
import type { ScenarioText } from '../../../agents/scripted/scenarios.ts'
import { Button, Menu, type MenuItem } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Failure, Loading, Section } from '../../components/page.tsx'
import { DryRun, ScenarioDialog } from './scenario-dialog.tsx'
import {
  CONTROL_SOURCE,
  type ListedScenario,
  StepList,
  scenarioPosition,
  scenarioTextOf,
  useScenarios,
  writtenSteps,
} from './scenario-set.tsx'

/** What a new scenario begins with. */
const EXAMPLE: ScenarioText = {
  name: 'deploy',
  match: { regex: '^deploy (?P<app>.+)$' },
  steps: [{ run: 'ls -A' }, { ask: 'Shall I really deploy {{app}}?' }, { complete: '{{app}} is deployed.' }],
} as ScenarioText

/** What is asked for: a scenario to edit, at its position if it is there, or one to delete. */
type Asked = { edit: ScenarioText; index: number | null } | { remove: ListedScenario; index: number }

/** The scenarios of the scripted agent, in the order in which they are tried, and a dry run of a goal. */
export function ScenarioControls() {
  const scenarios = useScenarios()
  const { all, replace } = scenarios
  const [asked, setAsked] = useState<Asked | null>(null)
  const [found, setFound] = useState<number | null>(null)
  const list = all instanceof Error || all === null ? [] : all
  const count = list.filter(({ source }) => source === CONTROL_SOURCE).length
  const move = (from: number, to: number) =>
    replace((set) => {
      const moved = set[from]
      return moved ? set.toSpliced(from, 1).toSpliced(to, 0, moved) : set
    })
  const itemsOf = (scenario: ListedScenario, index: number): MenuItem[] =>
    scenario.source === CONTROL_SOURCE
      ? [
          { label: 'Edit', icon: 'file', run: () => setAsked({ edit: scenarioTextOf(scenario), index }) },
          ...(index > 0
            ? [{ label: 'Try it earlier', icon: 'upload' as const, run: () => move(index, index - 1) }]
            : []),
          ...(index < count - 1
            ? [{ label: 'Try it later', icon: 'download' as const, run: () => move(index, index + 1) }]
            : []),
          {
            label: 'Delete',
            icon: 'trash',
            isDangerous: true,
            run: () => setAsked({ remove: scenario, index }),
          },
        ]
      : [
          {
            label: 'Put one before it',
            icon: 'plus',
            run: () => setAsked({ edit: scenarioTextOf(scenario), index: null }),
          },
        ]
  return (
    <Section
      title="Scenarios"
      actions={
        <Button icon="plus" onClick={() => setAsked({ edit: EXAMPLE, index: null })}>
          New scenario
        </Button>
      }
    >
      <DryRun onFound={setFound} />
      {all instanceof Error ? (
        <Failure error={all} />
      ) : all === null ? (
        <Loading />
      ) : all.length === 0 ? (
        <p class="quiet">
          None is set: goals are done by their directives.{' '}
          <a href="/docs/guide/scenarios">How scenarios work</a>
        </p>
      ) : (
        <ol class="cards">
          {all.map((scenario, index) => (
            <ScenarioCard
              key={index}
              scenario={scenario}
              isFound={index === found}
              items={itemsOf(scenario, index)}
            />
          ))}
        </ol>
      )}
      {asked && 'edit' in asked && (
        <ScenarioDialog
          title={asked.index === null ? 'New scenario' : `Scenario ${titleOf(asked.edit)}`}
          scenario={asked.edit}
          index={asked.index}
          scenarios={scenarios}
          onClose={() => setAsked(null)}
        />
      )}
      {asked && 'remove' in asked && (
        <Confirm
          title={`Delete the scenario ${titleOf(asked.remove)}?`}
          action="Delete"
          onClose={() => setAsked(null)}
          onConfirm={() =>
            replace((set) =>
              set.toSpliced(scenarioPosition(scenarioTextOf(asked.remove), asked.index, set), 1),
            )
          }
        >
          <p>Goals that it takes go to the next one that matches, else to their own directives.</p>
        </Confirm>
      )}
    </Section>
  )
}

function ScenarioCard({
  scenario,
  isFound,
  items,
}: {
  scenario: ListedScenario
  isFound: boolean
  items: readonly MenuItem[]
}) {
  const { match, steps, source } = scenario
  const title = titleOf(scenario)
  const matcher = typeof match === 'string' ? match : String(Object.values(match)[0])
  const kind = typeof match === 'string' ? 'goal' : Object.keys(match)[0]
  return (
    <li class={`card${isFound ? ' found' : ''}`} aria-current={isFound ? 'true' : undefined}>
      <details class="card-main">
        <summary>
          <strong>
            <bdi>{title}</bdi>
          </strong>{' '}
          <span class="chip">{kind}</span> {title !== matcher && <code>{matcher}</code>}
          <p class="quiet">
            {steps.length} {steps.length === 1 ? 'step' : 'steps'},{' '}
            {source === CONTROL_SOURCE ? (
              'set by the control API'
            ) : (
              <>
                from <code>{source}</code>
              </>
            )}
          </p>
        </summary>
        <StepList steps={writtenSteps(scenario)} />
      </details>
      <Menu label={`Actions on the scenario ${title}`} items={items} />
    </li>
  )
}

/** Returns the name of a scenario, else what it matches. */
const titleOf = ({ name, match }: ScenarioText): string =>
  name ?? (typeof match === 'string' ? match : String(Object.values(match)[0]))
