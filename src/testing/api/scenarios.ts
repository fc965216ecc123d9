import { Elysia, type Static, t } from 'elysia'
import type { ScenarioStore } from '../../agents/scripted/store.ts'
import { Given, Mistake } from '../../contract/given.ts'
import { operation } from '../../contract/operation.ts'
import { badRequest } from '../../errors.ts'
import type { ControlAccess } from './access.ts'

const Scenario = t.Object(
  {
    name: t.Optional(t.String()),
    match: t.Unknown({ description: 'Which goals it is for: a text, a glob or a regular expression.' }),
    steps: t.Array(t.Unknown()),
    source: t.String({ description: '`control`, or the path of the file that it stands in.' }),
  },
  { $id: 'Scenario' },
)

const Scenarios = t.Object({ scenarios: t.Array(Scenario) })
export type Scenarios = Static<typeof Scenarios>

/** Their shape is checked with places and reasons by the reader that files go through too. */
const ScenariosPut = t.Object(
  { scenarios: t.Unknown({ type: 'array', description: 'Each as in a fixtures file, without `source`.' }) },
  { $id: 'ScenariosPut', additionalProperties: false },
)

/** `/_berth/scenarios`: what the scripted agent does about which goals. */
export const scenariosRoutes = (access: ControlAccess, store: ScenarioStore) => {
  const all = () => ({ scenarios: store.list().map(({ source, text }) => ({ ...text, source })) })
  return new Elysia({ prefix: '/_berth/scenarios' })
    .use(access)
    .get(
      '',
      all,
      operation('control.scenarios.list', {
        access: 'admin',
        summary: 'The scenarios that hold, in the order in which they are tried',
        success: { 200: Scenarios },
      }),
    )
    .put(
      '',
      async ({ body }) => {
        try {
          await store.replace(new Given(body.scenarios, ['scenarios']))
        } catch (error) {
          throw error instanceof Mistake ? badRequest(error.sentence('in the body')) : error
        }
        return all()
      },
      operation(
        'control.scenarios.replace',
        {
          access: 'admin',
          summary: 'Set scenarios in place of those set before',
          success: { 200: Scenarios },
        },
        { body: ScenariosPut },
      ),
    )
    .delete(
      '',
      () => {
        store.clear()
        return all()
      },
      operation('control.scenarios.clear', {
        access: 'admin',
        summary: 'Remove the scenarios that were set; those of files stay',
        success: { 200: Scenarios },
      }),
    )
}
