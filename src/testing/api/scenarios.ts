import { Elysia, type Static, status, t } from 'elysia'
import type { ScenarioStore } from '../../agents/agents.ts'
import {
  SCENARIO_FIELDS,
  ScenarioText,
  ScenarioTexts,
  StepKindName,
} from '../../agents/scripted/scenarios.ts'
import { DeleteResult, envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { refused } from '../../contract/request.ts'
import { integer, NOT_BLANK, oneOf, text } from '../../contract/schema.ts'
import { notFound } from '../../errors.ts'
import { JsonReader } from '../../runtime/validation/json-reader.ts'
import { checkAccount } from './account.ts'
import type { ControlParts } from './parts.ts'

const Scenario = t.Object(
  {
    ...SCENARIO_FIELDS,
    source: t.String({ description: '`control`, or the path of the file that it stands in.' }),
    id: t.Optional(t.String({ description: 'Of one that was added alone, to delete it by.' })),
  },
  { $id: 'Scenario' },
)

export const Scenarios = listOf('scenarios', Scenario)
export type Scenarios = Static<typeof Scenarios>

const ScenariosPut = t.Object(
  {
    scenarios: ScenarioTexts,
    expected: t.Optional(
      t.Unsafe<Static<typeof ScenarioTexts>>({
        ...ScenarioTexts,
        description:
          'The scenarios that this API has set so far, as they were read: if others are set by now, nothing changes.',
      }),
    ),
  },
  { $id: 'ScenariosPut', additionalProperties: false },
)

const PreviewRequest = t.Object(
  {
    goal: text({
      minLength: 1,
      maxLength: 1024 * 1024,
      pattern: NOT_BLANK,
      description: 'The goal of a task or build.',
    }),
    account_id: t.Optional(t.String({ description: 'The account whose goal it would be.' })),
    scenarios: t.Optional(ScenarioTexts),
  },
  { $id: 'ScenarioPreviewRequest', additionalProperties: false },
)

const PlannedStep = t.Object(
  {
    kind: StepKindName,
    text: t.String({
      description: 'The command, content, question, message or result with its values; else empty.',
    }),
    path: t.Optional(t.String({ description: 'Of `write` and `read`.' })),
    as: t.Optional(t.String({ description: 'The name of its result for later steps.' })),
  },
  { $id: 'PlannedStep' },
)

const ScenarioPreview = t.Object(
  {
    by: oneOf(['scenario', 'directives', 'nothing'], {
      $id: 'PlannedBy',
      description: 'What tells the agent what to do.',
    }),
    scenario: t.Nullable(
      t.Object(
        {
          index: integer({ minimum: 0, description: 'Its position in the list.' }),
          name: t.String({ description: 'Its name, else what it matches.' }),
          source: t.String({ description: '`control`, or the path of its file.' }),
        },
        { $id: 'MatchingScenario' },
      ),
    ),
    values: t.Record(t.String(), t.String(), { description: 'What the goal gives to the steps, by name.' }),
    steps: t.Array(PlannedStep, { description: 'In order. What only a run tells stays `{{name}}`.' }),
    problem: t.Nullable(t.String(), { description: 'Why the agent would fail at once.' }),
  },
  { $id: 'ScenarioPreview' },
)

/** Returns all scenarios as the control API shows them. */
export const shownScenarios = (store: ScenarioStore): Scenarios => ({
  scenarios: store.list().map(({ source, id, text }) => ({ ...text, source, ...(id !== null && { id }) })),
})

/** Serves `/_berth/scenarios`: the scripted agent's scenarios. */
export const scenariosRoutes = ({
  access,
  services: { scenarios: store, queries, changes, controlIds: ids },
}: ControlParts) => {
  /** Checks that the account of a scenario exists. @param where names the scenario */
  const checkAccountOf = ({ match }: ScenarioText, where: string): void => {
    const id = typeof match === 'object' ? match.account_id : undefined
    checkAccount(queries, id, `"${where}match.account_id" in the body`)
  }
  const all = () => shownScenarios(store)
  const changed = () => {
    changes.notify('scenario', 'scenarios', null)
    return all()
  }
  return new Elysia({ prefix: '/_berth/scenarios' })
    .use(access)
    .get(
      '',
      all,
      operation('control.scenarios.list', {
        access: 'admin',
        summary: 'The scenarios that hold, in the order in which they are tried',
        description:
          'Scenarios set by this API come before those of fixtures files. The first that matches the goal of a task is used.',
        success: { 200: Scenarios },
      }),
    )
    .post(
      '/preview',
      async ({ body }) => {
        const { previewGoal } = await import('../../agents/scripted/scenarios.ts')
        const given = body.scenarios === undefined ? null : new JsonReader(body.scenarios, ['scenarios'])
        const previewing = previewGoal(body.goal, store, body.account_id, given)
        const { steps, ...preview } = await previewing.catch(refused('body'))
        return { ...preview, values: { ...preview.values }, steps: [...steps] }
      },
      operation(
        'control.scenarios.preview',
        {
          access: 'admin',
          summary: 'See what the scripted agent would do about a goal',
          description:
            'Names the scenario that would take it, and the steps with their values, without doing anything. `scenarios` are tried in place of those that were set, so that you can check them before you set them.',
          success: { 200: ScenarioPreview },
        },
        { body: PreviewRequest },
      ),
    )
    .post(
      '',
      async ({ body }) => {
        checkAccountOf(body, '')
        const id = ids.next('scn', (taken) => store.list().some((one) => one.id === taken))
        await store.add(new JsonReader(body), id).catch(refused('body'))
        changed()
        return status(201, { scenario: { ...body, source: 'control', id } })
      },
      operation(
        'control.scenarios.add',
        {
          access: 'admin',
          summary: 'Add one scenario, before those that were set',
          description:
            'Changes no other scenario. With `match.account_id` it holds for one account alone, so that tests that run at the same time can have scenarios of their own.',
          success: { 201: envelope('scenario', Scenario) },
        },
        { body: ScenarioText },
      ),
    )
    .put(
      '',
      async ({ body }) => {
        const { scenarios, expected } = body
        for (const [index, one] of scenarios.entries()) checkAccountOf(one, `scenarios[${index}].`)
        await store.replace(new JsonReader(scenarios, ['scenarios']), expected).catch(refused('body'))
        return changed()
      },
      operation(
        'control.scenarios.replace',
        {
          access: 'admin',
          summary: 'Set scenarios in place of those set before',
          description:
            'Replaces all scenarios that were set before. If one has a mistake, none changes. They survive a restart. With `expected` no change of another client is lost: 400 if it has set others.',
          success: { 200: Scenarios },
        },
        { body: ScenariosPut },
      ),
    )
    .delete(
      '/:scenarioId',
      ({ params: { scenarioId } }) => {
        if (!store.remove(scenarioId)) throw notFound(`The scenario ${JSON.stringify(scenarioId)}`)
        changed()
        return { id: scenarioId, deleted: true as const }
      },
      operation('control.scenarios.delete', {
        access: 'admin',
        summary: 'Remove a scenario that was added',
        description: 'Tasks that follow it go on.',
        success: { 200: DeleteResult },
        errors: [404],
      }),
    )
    .delete(
      '',
      () => {
        store.clear()
        return changed()
      },
      operation('control.scenarios.clear', {
        access: 'admin',
        summary: 'Remove the scenarios that were set; those of files stay',
        description: 'The response lists the scenarios that are left.',
        success: { 200: Scenarios },
      }),
    )
}
