import { type Static, t } from 'elysia'
import { text } from '../../contract/schema.ts'
import { unchangeable } from '../../runtime/validation/validate.ts'

const allowedServers = t.Array(t.String(), { description: 'Ids of servers; empty means all servers.' })
const allowedProjects = t.Array(t.String(), { description: 'Ids of projects; empty means all projects.' })

const shownKey = {
  id: t.String(),
  label: t.String(),
  masked: t.String({ description: 'The key as it may be shown: its prefix and its last four characters.' }),
  allowed_server_ids: allowedServers,
  allowed_project_ids: allowedProjects,
  created_at: t.String({ format: 'date-time' }),
  last_used_at: t.Nullable(t.String({ format: 'date-time' }), { description: 'To the minute.' }),
}

/** A key, as every response shows it except the one to its creation. */
export const ApiKey = t.Object(shownKey, { $id: 'ApiKey', additionalProperties: true })
export type ApiKey = Static<typeof ApiKey>

/** The response to a key's creation, the only one with its plaintext. */
export const CreatedApiKey = t.Object(
  { ...shownKey, key: t.String({ description: 'The key itself. No other response shows it.' }) },
  { $id: 'CreatedApiKey', additionalProperties: true },
)
export type CreatedApiKey = Static<typeof CreatedApiKey>

/** The label of a new key and, beyond the specification, its scope. */
export const ApiKeyCreate = t.Object(
  {
    label: text({ minLength: 1, maxLength: 40 }),
    allowed_server_ids: t.Optional(allowedServers),
    allowed_project_ids: t.Optional(allowedProjects),
  },
  { $id: 'ApiKeyCreate', additionalProperties: true },
)
export type ApiKeyCreate = Static<typeof ApiKeyCreate>

/** The new scope of a key, which replaces the old one. */
export const ApiKeyScopeUpdate = unchangeable(
  t.Object(
    { allowed_server_ids: t.Optional(allowedServers), allowed_project_ids: t.Optional(allowedProjects) },
    { $id: 'ApiKeyScopeUpdate', additionalProperties: false },
  ),
  Object.keys(shownKey),
)
export type ApiKeyScopeUpdate = Static<typeof ApiKeyScopeUpdate>

/** The response to a change of scope. */
export const ApiKeyScope = t.Object(
  {
    id: t.Optional(t.String()),
    allowed_server_ids: t.Optional(allowedServers),
    allowed_project_ids: t.Optional(allowedProjects),
  },
  { $id: 'ApiKeyScope', additionalProperties: true },
)
export type ApiKeyScope = Static<typeof ApiKeyScope>
