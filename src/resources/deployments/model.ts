import { type Static, t } from 'elysia'
import { AppDirectory } from '../projects/app-directory.ts'
import {
  AppCrash,
  AppWarnings,
  AppWorker,
  DetectedApp,
  FailedChange,
  PortTaken,
  PUSHED,
  PUSHED_FILES,
} from '../projects/model.ts'

/** A published workspace. */
export const Deployment = t.Object(
  {
    url: t.String({ format: 'uri' }),
    live: t.Boolean({ description: 'False while the server sleeps.' }),
    app: t.Optional(DetectedApp),
    warnings: AppWarnings,
    workers: t.Array(AppWorker, { description: 'Programs that run beside its app, or are the whole of it.' }),
    crash: t.Optional(AppCrash),
    failed_change: t.Optional(FailedChange),
    port_taken: t.Optional(PortTaken),
  },
  { $id: 'Deployment', additionalProperties: true },
)
export type Deployment = Static<typeof Deployment>

/** The response to the removal of a deployment. */
export const RemovedDeployment = t.Object(
  { url: t.String({ format: 'uri' }), deleted: t.Literal(true) },
  { $id: 'RemovedDeployment', additionalProperties: true },
)
export type RemovedDeployment = Static<typeof RemovedDeployment>

/** What of a workspace is published. */
export const DeploymentCreate = t.Object(
  { directory: t.Optional(AppDirectory) },
  { $id: 'DeploymentCreate', additionalProperties: true },
)
export type DeploymentCreate = Static<typeof DeploymentCreate>

/** The response to a publication. */
export const PublishedDeployment = t.Object(
  {
    url: t.String({ format: 'uri' }),
    status: t.Literal('live'),
    app: t.Optional(DetectedApp),
    warnings: AppWarnings,
  },
  { $id: 'PublishedDeployment', additionalProperties: true },
)
export type PublishedDeployment = Static<typeof PublishedDeployment>

/** The files that a workspace is to have when it is published. */
export const DeploymentPush = t.Object(
  {
    ...PUSHED_FILES,
    removed: t.Optional(
      t.Array(t.String({ minLength: 1 }), {
        maxItems: 20_000,
        description: 'Files and links to remove, if they are there.',
      }),
    ),
    clean: t.Optional(
      t.Boolean({
        description: 'Remove all files and links that are not described, except for those of projects.',
      }),
    ),
    directory: t.Optional(AppDirectory),
  },
  { $id: 'DeploymentPush', additionalProperties: true },
)
export type DeploymentPush = Static<typeof DeploymentPush>

/** The response to a push. */
export const DeploymentPushResult = t.Object(
  {
    ...PUSHED,
    deployment: t.Nullable(PublishedDeployment, {
      description: 'Null as long as files are missing.',
    }),
  },
  { $id: 'DeploymentPushResult', additionalProperties: true },
)
export type DeploymentPushResult = Static<typeof DeploymentPushResult>
