import { Elysia, t } from 'elysia'
import { DeleteResult } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { notFound } from '../../errors.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { toIso } from '../../runtime/clock.ts'
import type { Grants } from '../oauth/grants.ts'
import { type BrowserSessions, endOf } from '../session/sessions.ts'
import { Browser, Program } from './model.ts'
import { browserName } from './words.ts'

/** Dependencies of the routes. */
interface AccessApiDependencies {
  grants: Grants
  sessions: () => Promise<BrowserSessions>
}

/** Serves `/programs` and `/browsers`: who has access to the account beside its API keys, and its end. */
export const accessApiRoutes = (access: AccessControl, { grants, sessions }: AccessApiDependencies) =>
  new Elysia()
    .use(access)
    .get(
      '/programs',
      ({ caller }) => ({
        programs: grants.list(caller.accountId).map((grant) => ({
          id: grant.id,
          name: grant.clientName,
          client_id: grant.clientId,
          redirect_uris: grant.redirectUris,
          allowed_server_ids: grant.allowedServerIds,
          allowed_project_ids: grant.allowedProjectIds,
          created_at: toIso(grant.createdAt),
          last_used_at: grant.lastUsedAt === null ? null : toIso(grant.lastUsedAt),
        })),
      }),
      operation('programs.list', {
        access: 'account',
        summary: 'List the programs that may use the account',
        description: 'OAuth clients, such as MCP hosts, that a person has let in, newest first.',
        success: { 200: t.Object({ programs: t.Array(Program) }) },
        errors: [401, 403],
      }),
    )
    .delete(
      '/programs/:programId',
      ({ caller, params: { programId } }) => {
        grants.revoke(caller.accountId, programId)
        return { id: programId, deleted: true as const }
      },
      operation('programs.delete', {
        access: 'account',
        summary: 'Let a program in no more',
        description: 'Ends all that the program was granted for this account, with all its tokens, at once.',
        success: { 200: DeleteResult },
        errors: [401, 403, 404],
      }),
    )
    .get(
      '/browsers',
      async ({ caller }) => ({
        browsers: (await sessions()).list(caller.accountId).map((session) => ({
          id: session.id,
          name: browserName(session.userAgent),
          is_admin: session.isAdmin,
          is_current: session.id === caller.credentialId,
          created_at: toIso(session.createdAt),
          last_used_at: toIso(session.seenAt),
          expires_at: toIso(endOf(session)),
        })),
      }),
      operation('browsers.list', {
        access: 'account',
        summary: 'List the browsers that are signed in',
        description: 'Those of the account, newest first.',
        success: { 200: t.Object({ browsers: t.Array(Browser) }) },
        errors: [401, 403],
      }),
    )
    .delete(
      '/browsers/:browserId',
      async ({ caller, params: { browserId } }) => {
        const isEnded = (await sessions()).end(caller.accountId, browserId)
        if (!isEnded) throw notFound(`The browser "${browserId}"`)
        return { id: browserId, deleted: true as const }
      },
      operation('browsers.delete', {
        access: 'account',
        summary: 'Sign a browser out',
        description: 'Ends its session at once, with its streams and terminals.',
        success: { 200: DeleteResult },
        errors: [401, 403, 404],
      }),
    )
