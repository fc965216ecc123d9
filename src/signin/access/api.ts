import { Elysia, t } from 'elysia'
import { DeleteResult } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { notFound } from '../../errors.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { Browser, Program } from '../../resources/accounts/access-model.ts'
import type { Grants } from '../oauth/grants.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import { browserView, programView } from './views.ts'

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
      ({ caller }) => ({ programs: grants.list(caller.accountId).map(programView) }),
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
        browsers: (await sessions()).list(caller.accountId).map((session) => browserView(session, caller)),
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
