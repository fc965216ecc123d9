/** `/programs` and `/browsers` of the API: who has access to an account beside its keys. */
import { Elysia } from 'elysia'
import { DeleteResult, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { notFound } from '../../errors.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { type Caller, isScoped } from '../../http/caller.ts'
import { type Html, html } from '../../http/pages/html.ts'
import { Browser, Program } from '../../resources/accounts/access-model.ts'
import { OwnAccount } from '../../resources/accounts/model.ts'
import { type AccountsDependencies, AccountsService } from '../../resources/accounts/service.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import { toIso } from '../../runtime/clock.ts'
import type { Grants, GrantView } from '../oauth/grants.ts'
import { type BrowserSession, type BrowserSessions, sessionEnd } from '../session/sessions.ts'

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
  expires_at: toIso(sessionEnd(session)),
})

/**
 * Renders a time in UTC, to the minute.
 *
 * @param at milliseconds since 1970, or ISO 8601
 */
export function formatTime(at: number | string): Html {
  const date = new Date(at)
  const [, day, month, year, time = ''] = date.toUTCString().split(' ')
  return html`<time datetime="${toIso(date.getTime())}">${day} ${month} ${year}, ${time.slice(0, 5)} UTC</time>`
}

/** Returns the time of the last use, as the end of a sentence. */
export const lastUsedText = (at: number | string | null): Html =>
  at === null ? html`never used` : html`last used ${formatTime(at)}`

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Returns the destinations of a client's codes. A client can choose its name freely, but not its address. */
export function destinationsOf(redirectUris: readonly string[]): string {
  const destinations = redirectUris.map((uri) => {
    const url = URL.parse(uri)
    if (!url) return uri
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return `an app for ${url.protocol}// links`
    return LOOPBACK.test(url.hostname) ? 'this machine' : url.host
  })
  return [...new Set(destinations)].join(', ')
}

/** Patterns for browsers. The order matters, since most browsers also send the names of others. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\bHeadlessChrome\//, 'Headless Chrome'],
  [/\b(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/**
 * Returns a browser's name, as in "Firefox on Linux". It helps people to recognise their own browser and proves
 * nothing.
 */
export function browserName(userAgent: string): string {
  const find = (table: typeof BROWSERS) => table.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = find(BROWSERS) ?? (userAgent.split(/[\s/]/, 1)[0] || 'Unknown browser')
  const system = find(SYSTEMS)
  return system === undefined ? browser : `${browser} on ${system}`
}

/** Dependencies of the routes. */
interface AccessApiDependencies extends AccountsDependencies {
  keys: AccountsDependencies['keys'] & Pick<KeysService, 'list'>
  signIn: AccountsDependencies['signIn'] & { grants: Grants; sessions: () => Promise<BrowserSessions> }
}

/** Names the credential of a caller. */
async function labelOf(caller: Caller, { keys, signIn }: AccessApiDependencies): Promise<string> {
  const { credentialId: id, accountId } = caller
  const key = keys.list(caller).find((one) => one.id === id)
  if (key) return key.label
  const grant = signIn.grants.list(accountId).find((one) => one.id === id)
  if (grant) return grant.clientName
  const session = (await signIn.sessions()).list(accountId).find((one) => one.id === id)
  return session === undefined ? '' : browserName(session.userAgent)
}

/** Serves `/account`, `/programs` and `/browsers`: the account of a key, who has access beside its keys, and the end of that. */
export function accessApiRoutes(access: AccessControl, dependencies: AccessApiDependencies) {
  const { grants, sessions } = dependencies.signIn
  const accounts = new AccountsService(dependencies)
  return new Elysia()
    .use(access)
    .get(
      '/account',
      async ({ caller }) => {
        const { id, label, plan, budget_cap, credits_used } = accounts.get(caller.accountId)
        const key = {
          id: caller.credentialId,
          label: await labelOf(caller, dependencies),
          scoped: isScoped(caller),
        }
        return { id, label, plan, budget_cap, credits_used, key }
      },
      operation('account.get', {
        access: 'resource',
        summary: 'Show the account of a key',
        description:
          'Who sends the request: the account with its plan, its budget and what it has used of it in this month, and the key.',
        success: { 200: OwnAccount },
        errors: [401],
      }),
    )
    .get(
      '/programs',
      ({ caller }) => ({ programs: grants.list(caller.accountId).map(programView) }),
      operation('programs.list', {
        access: 'account',
        summary: 'List the programs that may use the account',
        description: 'OAuth clients, such as MCP hosts, that a person has let in, newest first.',
        success: { 200: listOf('programs', Program) },
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
        success: { 200: listOf('browsers', Browser) },
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
}
