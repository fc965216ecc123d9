import { type Static, t } from 'elysia'

/** A program that may use the account: an OAuth client that a person has let in. */
export const Program = t.Object(
  {
    id: t.String(),
    name: t.String({ description: 'As the program calls itself, which proves nothing.' }),
    client_id: t.String(),
    redirect_uris: t.Array(t.String(), { description: 'Where its codes go.' }),
    allowed_server_ids: t.Array(t.String(), { description: 'Empty: all servers.' }),
    allowed_project_ids: t.Array(t.String(), { description: 'Empty: all projects.' }),
    created_at: t.String({ format: 'date-time' }),
    last_used_at: t.Nullable(t.String({ format: 'date-time' })),
  },
  { $id: 'Program', additionalProperties: true },
)
export type Program = Static<typeof Program>

/** A browser that is signed in to the account. */
export const Browser = t.Object(
  {
    id: t.String(),
    name: t.String({ description: 'As it calls itself, such as `Firefox on Linux`.' }),
    is_admin: t.Boolean({ description: 'Whether it may use the control API.' }),
    is_current: t.Boolean({ description: 'Whether it has sent this request.' }),
    created_at: t.String({ format: 'date-time' }),
    last_used_at: t.String({ format: 'date-time' }),
    expires_at: t.String({
      format: 'date-time',
      description: 'When its session ends if it is not used again.',
    }),
  },
  { $id: 'Browser', additionalProperties: true },
)
export type Browser = Static<typeof Browser>
