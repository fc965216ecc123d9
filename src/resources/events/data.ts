import { type Static, type TObject, Type } from '@sinclair/typebox'
import type { EmittedName } from './names.ts'

const text = (description: string) => Type.String({ description })
const nullableUrl = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const serverId = text('Id of the server.')
const projectId = text('Id of the project.')
const tier = text('Size of the server: small, medium or large.')
const region = text('Where the server is said to be.')

/** Ids for examples. */
const SERVER = 'srv_01k0example0server0000000'
const PROJECT = 'prj_01k0example0project000000'
const TASK = 'task_01k0example0task000000000'

const task = (status: string, result?: string) =>
  Type.Object(
    {
      task_id: text('Id of the task.'),
      server_id: serverId,
      status: text('State of the task.'),
      result: Type.Optional(text('What came of it, or why it failed.')),
    },
    { examples: [{ task_id: TASK, server_id: SERVER, status, ...(result ? { result } : {}) }] },
  )

const serverRuns = (status: string) =>
  Type.Object(
    { server_id: serverId, status: text('State of the server.'), tier, region },
    { examples: [{ server_id: SERVER, status, tier: 'small', region: 'us-east' }] },
  )

const deployment = Type.Object(
  { server_id: serverId, url: text('URL of the deployment.') },
  { examples: [{ server_id: SERVER, url: 'http://example.localhost:4747/' }] },
)

const quota = (credits: number) =>
  Type.Object(
    {
      credits_used: Type.Number({ description: 'Credits used in this calendar month (UTC).' }),
      budget_cap: Type.Number({ description: 'Credits that the month may use.' }),
    },
    { examples: [{ credits_used: credits, budget_cap: 1_000 }] },
  )

const tuning = Type.Object({}, { examples: [{}] })

/**
 * The data of each event's payload in addition to `event` and `created_at` (specification, "Payload shapes"), with an
 * example. It is the only source of types, documents and synthetic events. Field names are snake_case, as in every
 * payload. More fields may be added later.
 */
export const EVENT_DATA = {
  'task.created': task('running'),
  'task.completed': task('completed', 'Done.'),
  'task.failed': task('failed', 'A command failed.'),
  'project.ready': Type.Object(
    { project_id: projectId, server_id: serverId, url: nullableUrl('URL of the app; null while private.') },
    { examples: [{ project_id: PROJECT, server_id: SERVER, url: 'http://127.0.0.1:4801/' }] },
  ),
  'project.init_failed': Type.Object(
    {
      project_id: projectId,
      server_id: serverId,
      init_phase: text('The step of the bring-up that failed.'),
      log: Type.Optional(text("The end of that step's log.")),
    },
    { examples: [{ project_id: PROJECT, server_id: SERVER, init_phase: 'install', log: 'not found\n' }] },
  ),
  'project.secrets_required': Type.Object(
    {
      project_id: projectId,
      server_id: serverId,
      keys: Type.Array(Type.String(), { description: 'Names of the environment variables to provide.' }),
    },
    { examples: [{ project_id: PROJECT, server_id: SERVER, keys: ['DATABASE_URL'] }] },
  ),
  'deployment.live': deployment,
  'deployment.removed': deployment,
  'server.created': serverRuns('running'),
  'server.stopped': serverRuns('sleeping'),
  'server.deleted': Type.Object(
    { server_id: serverId, tier, region },
    { examples: [{ server_id: SERVER, tier: 'small', region: 'us-east' }] },
  ),
  'quota.threshold': quota(800),
  'quota.cap_reached': quota(1_000),
  'tuning.started': tuning,
  'tuning.completed': tuning,
  'webhook.disabled': Type.Object(
    {
      webhook_id: text('Id of the webhook.'),
      url: text('Where it sent events.'),
      delivery_id: text('The delivery that the receiver answered with 410.'),
    },
    {
      examples: [
        {
          webhook_id: 'wh_01k0example0webhook000000',
          url: 'https://example.com/hook',
          delivery_id: 'dlv_01k0example0delivery00000',
        },
      ],
    },
  ),
} as const satisfies Record<EmittedName, TObject>

/** The data of each event, by its name. */
export type EventData = { [Name in EmittedName]: Static<(typeof EVENT_DATA)[Name]> }

/** Returns the example of an event's data. */
export const exampleOf = (event: EmittedName): Record<string, unknown> => ({
  ...(EVENT_DATA[event] as TObject & { examples: Record<string, unknown>[] }).examples[0],
})
