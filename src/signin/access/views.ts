import type { Caller } from '../../http/caller.ts'
import type { Browser, Program } from '../../resources/accounts/access-model.ts'
import { toIso } from '../../runtime/clock.ts'
import type { GrantView } from '../oauth/grants.ts'
import { type BrowserSession, endOf } from '../session/sessions.ts'
import { browserName } from './words.ts'

/** Returns a program as the API shows it. */
export const programView = (grant: GrantView): Program => ({
  id: grant.id,
  name: grant.clientName,
  client_id: grant.clientId,
  redirect_uris: grant.redirectUris,
  allowed_server_ids: grant.allowedServerIds,
  allowed_project_ids: grant.allowedProjectIds,
  created_at: toIso(grant.createdAt),
  last_used_at: grant.lastUsedAt === null ? null : toIso(grant.lastUsedAt),
})

/** Returns a browser as the API shows it to a caller, who may be that browser. */
export const browserView = (session: BrowserSession, { credentialId }: Caller): Browser => ({
  id: session.id,
  name: browserName(session.userAgent),
  is_admin: session.isAdmin,
  is_current: session.id === credentialId,
  created_at: toIso(session.createdAt),
  last_used_at: toIso(session.seenAt),
  expires_at: toIso(endOf(session)),
})
