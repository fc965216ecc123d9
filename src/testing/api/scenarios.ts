import { Elysia, type Static, t } from 'elysia'
import { SCENARIO_FIELDS, ScenarioTexts } from '../../agents/scripted/model.ts'
import type { ScenarioStore } from '../../agents/scripted/store.ts'
import { operation } from '../../contract/operation.ts'
import { refused } from '../../contract/request.ts'
import type { Changes } from '../../resources/changes/types.ts'
import { JsonReader } from '../../runtime/validation/json-reader.ts'
import type { ControlAccess } from './control-access.ts'

const Scenario = t.Object(
  {
    ...SCENARIO_FIELDS,
    source: t.String({ description: '`control`, or the path of the file that it stands in.' }),
  },
  { $id: 'Scenario' },
)

const Scenarios = t.Object({ scenarios: t.Array(Scenario) })
export type Scenarios = Static<typeof Scenarios>

const ScenariosPut = t.Object(
  { scenarios: ScenarioTexts },
  { $id: 'ScenariosPut', additionalProperties: false },
)

/** Returns all scenarios as the control API shows them. */
export const shownScenarios = (store: ScenarioStore): Scenarios => ({
  scenarios: store.list().map(({ source, text }) => ({ ...text, source })),
})

/** Serves `/_berth/scenarios`: the scripted agent's scenarios. */
export const scenariosRoutes = (access: ControlAccess, store: ScenarioStore, changes: Changes) => {
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
    .put(
      '',
      async ({ body }) => {
        await store.replace(new JsonReader(body.scenarios, ['scenarios'])).catch(refused('body'))
        return changed()
      },
      operation(
        'control.scenarios.replace',
        {
          access: 'admin',
          summary: 'Set scenarios in place of those set before',
          description:
            'Replaces all scenarios that were set before. If one has a mistake, none changes. They survive a restart.',
          success: { 200: Scenarios },
        },
        { body: ScenariosPut },
      ),
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
