import { Elysia, t } from 'elysia'
import { oneOf } from '../http/schema.ts'
import type { Services } from '../services.ts'
import type { ControlAccess } from './access.ts'
import { controlOperation } from './operation.ts'

const Fixture = t.Object({
  kind: oneOf(['account', 'server', 'project', 'key', 'webhook']),
  /** Its name in the files. */
  name: t.String(),
  id: t.String(),
  account_id: t.String(),
  /** The key itself; of an account the one that came with it. */
  api_key: t.Optional(t.Nullable(t.String())),
  server_id: t.Optional(t.String()),
  url: t.Optional(t.Nullable(t.String())),
  /** The signing secret. */
  secret: t.Optional(t.Nullable(t.String())),
})

/** `/_berth/fixtures`: what fixtures files have made, and how such a file looks. */
export const fixturesRoutes = (access: ControlAccess, services: Services) =>
  new Elysia({ prefix: '/_berth/fixtures' })
    .use(access)
    .get(
      '',
      async () => {
        const { listFixtures } = await import('../fixtures/listing.ts')
        return { fixtures: await listFixtures(services) }
      },
      controlOperation('control.fixtures.list', {
        summary: 'What fixtures files have made and is still there, with its ids, keys and signing secrets',
        success: { 200: t.Object({ fixtures: t.Array(Fixture) }) },
      }),
    )
    .get(
      '/schema',
      async () => {
        const { fixturesSchema } = await import('../fixtures/schema.ts')
        return fixturesSchema()
      },
      {
        detail: {
          operationId: 'control.fixtures.schema',
          summary: 'The JSON Schema of fixtures files, for editors; needs no credential',
        },
        response: { 200: t.Unknown() },
      },
    )
