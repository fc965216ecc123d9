import { type Static, t } from 'elysia'
import { AppCrash } from '../projects/model.ts'

/** A published workspace. */
export const Deployment = t.Object(
  {
    url: t.String({ format: 'uri' }),
    live: t.Boolean({ description: 'False while the server sleeps.' }),
    crash: t.Optional(AppCrash),
  },
  { $id: 'Deployment', additionalProperties: true },
)
export type Deployment = Static<typeof Deployment>

/** The response to the removal of a deployment. */
export const RemovedDeployment = t.Object(
  { url: t.String({ format: 'uri' }), deleted: t.Literal(true) },
  { $id: 'RemovedDeployment', additionalProperties: false },
)
export type RemovedDeployment = Static<typeof RemovedDeployment>

/** The response to a publication. */
export const PublishedDeployment = t.Object(
  { url: t.String({ format: 'uri' }), status: t.Literal('live') },
  { $id: 'PublishedDeployment', additionalProperties: true },
)
export type PublishedDeployment = Static<typeof PublishedDeployment>
