import { type Static, t } from 'elysia'
import type { OutboundMode } from '../../config/values.ts'
import { ComputeKind } from '../../contract/model.ts'
import { flagSchema, oneOf, text, used } from '../../contract/schema.ts'
import { unchangeable } from '../../runtime/validation/validate.ts'
import { DEFAULT_PLAN } from '../accounts/plan.ts'
import { TIERS, TierName } from '../accounts/tiers.ts'

const { cpus, memory_gib: memory, storage_gb: storage } = DEFAULT_PLAN

/** The sizes in words, as the default plan has them. */
const SIZES = TIERS.map(
  (tier) => `${tier} ${cpus[tier]} CPU, ${memory[tier]} GiB memory, ${storage[tier]} GB storage`,
).join('; ')

/** The size of a server. */
export const Tier = used(TierName, `Size of the server. By default ${SIZES}.`)
export type Tier = Static<typeof Tier>

/** The regions of servers. All of them are on this machine. */
export const REGIONS = ['us-east', 'us-west', 'eu-west'] as const

/** The region of a server. */
export const Region = oneOf([...REGIONS], { $id: 'Region' })
export type Region = Static<typeof Region>

/** The state of a server. */
export const ServerStatus = oneOf(['running', 'sleeping', 'building'], { $id: 'ServerStatus' })
export type ServerStatus = Static<typeof ServerStatus>

/** Most characters of a server's task: lists of servers contain it. @bound client */
const MAX_TASK = 10_000

/** The specification calls the label `task`. */
const LABEL = 'Label of the server, not work for an agent.'
const label = t.String({ description: LABEL })
const newLabel = text({ maxLength: MAX_TASK, description: LABEL })

/** A server, as every response shows it except the one to its creation. */
export const Server = t.Object(
  {
    id: t.String(),
    task: label,
    tier: Tier,
    status: ServerStatus,
    region: Region,
    creditsUsed: t.Number(),
    storageUsedGb: t.Number({ description: 'Decimal gigabytes that the workspace takes on disk.' }),
    publicUrl: t.Nullable(t.String(), { description: 'URL of the live deployment.' }),
    createdAt: t.Nullable(t.String({ format: 'date-time' })),
  },
  { $id: 'Server', additionalProperties: false },
)
export type Server = Static<typeof Server>

/** The response to a server's creation. */
export const CreatedServer = t.Object(
  {
    id: t.String(),
    url: t.Nullable(t.String(), { description: 'Null until something is published.' }),
    status: ServerStatus,
    tier: Tier,
  },
  { $id: 'CreatedServer', additionalProperties: true },
)
export type CreatedServer = Static<typeof CreatedServer>

/** Parameters of a new server. */
export const ServerCreate = t.Object(
  { task: t.Optional(newLabel), tier: t.Optional(Tier), region: t.Optional(Region) },
  { $id: 'ServerCreate', additionalProperties: false },
)
export type ServerCreate = Static<typeof ServerCreate>

/** Most characters of an image's reference. @bound client */
const MAX_IMAGE = 512

/** What a new server's system is, where servers have one of their own. */
export const ServerSystem = t.Object(
  {
    image: t.Optional(
      text({
        minLength: 1,
        maxLength: MAX_IMAGE,
        description: 'Where permitted.',
      }),
    ),
    root: t.Optional(flagSchema('Commands are root, where permitted.')),
  },
  { additionalProperties: false },
)
export type ServerSystem = Static<typeof ServerSystem>

/** Where a server runs. */
export const ServerCompute = t.Object(
  {
    compute: used(ComputeKind, 'What runs it.'),
    image: t.Nullable(t.String(), { description: 'Null for one that sees the system of this machine.' }),
    root: t.Boolean({ description: 'Whether its commands are root of their container.' }),
    node: t.Nullable(t.String(), {
      description: 'The machine that it is on, as the engine calls it; null if that is not known.',
    }),
    state: oneOf(['running', 'sleeping', 'building', 'unreachable'], {
      $id: 'ServerComputeState',
      description: 'Its status, or `unreachable` while berth does not reach what runs it.',
    }),
    cause: t.Nullable(t.String(), { description: 'Why it is unreachable, in a sentence.' }),
  },
  { $id: 'ServerCompute', additionalProperties: true },
)
export type ServerCompute = Static<typeof ServerCompute>

/** Changes to a server. */
export const ServerUpdate = unchangeable(
  t.Object(
    { task: t.Optional(newLabel), region: t.Optional(Region) },
    { $id: 'ServerUpdate', additionalProperties: false },
  ),
  Object.keys(Server.properties),
)
export type ServerUpdate = Static<typeof ServerUpdate>

/** What is set for a server's network; null is the instance's default. */
export interface NetworkChoice {
  readonly mode: OutboundMode | null
  /** Host patterns; see runtime/host-pattern.ts. */
  readonly hosts: readonly string[] | null
}

/** The action to perform on a server. */
export const ServerActionRequest = t.Object(
  { action: oneOf(['start', 'stop', 'restart'], { $id: 'ServerAction' }) },
  { $id: 'ServerActionRequest', additionalProperties: true },
)
export type ServerAction = Static<typeof ServerActionRequest>['action']

/** The response to an action. */
export const ServerActionResult = t.Object(
  { id: t.String(), status: ServerStatus },
  { $id: 'ServerActionResult', additionalProperties: true },
)
