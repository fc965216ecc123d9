import { Elysia, t } from 'elysia'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { oneOf } from '../../contract/schema.ts'
import { FixturesFile } from '../seed/model.ts'
import type { ControlParts } from './parts.ts'

const Fixture = t.Object(
  {
    kind: oneOf(['account', 'server', 'project', 'key', 'webhook'], { $id: 'FixtureKind' }),
    name: t.String({ description: 'Its name in the files.' }),
    id: t.String(),
    account_id: t.String(),
    api_key: t.Optional(
      t.Nullable(t.String({ description: 'The key itself; of an account the one that came with it.' })),
    ),
    server_id: t.Optional(t.String()),
    url: t.Optional(t.Nullable(t.String())),
    secret: t.Optional(t.Nullable(t.String({ description: 'The signing secret.' }))),
  },
  { $id: 'Fixture' },
)

/** A fixtures document without the clock and scenarios, which only a start sets. */
const ProjectFile = t.Omit(FixturesFile, ['clock', 'scenarios'], {
  additionalProperties: false,
  $id: 'FixturesDocument',
})

/** Serves `/_berth/fixtures`: what fixtures files have created, and their schema. */
export const fixturesRoutes = ({ access, services, states }: ControlParts) =>
  new Elysia({ prefix: '/_berth/fixtures' })
    .use(access)
    .get(
      '',
      async () => {
        const { listFixtures } = await import('../seed/records.ts')
        return { fixtures: await listFixtures(services) }
      },
      operation('control.fixtures.list', {
        access: 'admin',
        summary: 'What fixtures files have made and is still there, with its ids, keys and signing secrets',
        description: 'Gives a test the ids, keys and secrets of things that a fixtures file names.',
        secret: true,
        success: { 200: listOf('fixtures', Fixture) },
      }),
    )
    .post(
      '',
      async ({ body }) => {
        await states.bringUp(body)
        const { listFixtures } = await import('../seed/records.ts')
        return { fixtures: await listFixtures(services) }
      },
      operation(
        'control.fixtures.apply',
        {
          access: 'admin',
          summary: 'Make and fix what a fixtures document declares, beside what is there',
          description:
            'Bring-ups of projects are begun and not waited for, and servers that sleep are started. Values stand in the request: it reads no file and no variable of the machine. The response lists all that such documents and files have made.',
          secret: true,
          success: { 200: listOf('fixtures', Fixture) },
          errors: [503],
        },
        { body: ProjectFile },
      ),
    )
    .get(
      '/schema',
      async () => {
        const { fixturesSchema } = await import('../seed/model.ts')
        return fixturesSchema()
      },
      operation('control.fixtures.schema', {
        access: 'public',
        summary: 'The JSON Schema of fixtures files, for editors; needs no credential',
        description: 'Name it as `$schema` in a file, and editors complete and check it.',
        success: { 200: t.Unknown({ $id: 'JsonSchema', description: 'A JSON Schema, draft 7.' }) },
      }),
    )
