import { type Static, t } from 'elysia'

/** A published workspace. */
export const Deployment = t.Object(
  {
    url: t.String({ format: 'uri' }),
    live: t.Boolean({ description: 'False while the server sleeps.' }),
  },
  { $id: 'Deployment', additionalProperties: true },
)
export type Deployment = Static<typeof Deployment>

/** The response to a publication. */
export const PublishedDeployment = t.Object(
  { url: t.String({ format: 'uri' }), status: t.Literal('live') },
  { $id: 'PublishedDeployment', additionalProperties: true },
)
export type PublishedDeployment = Static<typeof PublishedDeployment>
