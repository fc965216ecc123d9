import { createHmac } from 'node:crypto'
import { Elysia } from 'elysia'
import { notFound } from '../../errors.ts'
import { accountCaller } from '../../http/caller.ts'
import { type Html, html } from '../../http/pages/html.ts'
import { redirectResponse } from '../../http/pages/page.ts'
import { accountLabel } from '../../resources/accounts/label.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import { isSameText } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import { listAccountResources, type ReachableSources } from '../account-resources.ts'
import type { Grants } from '../oauth/grants.ts'
import { quotedName } from '../pages/parts.ts'
import { type BrowserRequests, PAGE, pageRoute, type SignedInRequest } from '../session/browser-requests.ts'
import { expiredCookie } from '../session/sent-sessions.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import {
  type CredentialScope,
  credentialScope,
  deletePage,
  isWholeAccount,
  overviewPage,
  type ResourceNames,
  resourceNames,
  revealPage,
} from './pages.ts'

/** Dependencies of the access pages. */
interface AccessRoutesOptions extends ReachableSources {
  browserRequests: BrowserRequests
  sessions: () => Promise<BrowserSessions>
  grants: Grants
  keys: KeysService
  queries: Queries
}

/** Keeps the address of a revealed key out of the browser's history: it leads back to the list. */
const backToList = (): Response => redirectResponse('/access')

/**
 * Serves `/access`: all access to the account of the person who is signed in. Keys, programs and browsers of other
 * accounts are not found.
 */
export function accessRoutes({
  browserRequests,
  sessions,
  grants,
  keys,
  queries,
  ...parts
}: AccessRoutesOptions) {
  const done = (what: DoneAction, browser: SignedInRequest, program?: string): Response =>
    redirectResponse(`/access${noticeQuery(what, browser, program)}`)
  const keyOf = ({ session }: SignedInRequest, id = ''): ApiKey => {
    const key = keys.list(accountCaller(session.accountId)).find((one) => one.id === id)
    if (!key) throw notFound(`The API key "${id}"`)
    return key
  }
  /** Returns the names of the servers and projects in some scopes. Reads them only if a scope is limited. */
  const namesFor = async (accountId: string, reaches: readonly CredentialScope[]): Promise<ResourceNames> =>
    reaches.every(isWholeAccount) ? new Map() : resourceNames(await listAccountResources(accountId, parts))
  return new Elysia({ name: 'berth/access', prefix: '/access' })
    .get(
      '',
      pageRoute(async (request) => {
        const browser = await browserRequests.requireSession(request)
        const { accountId } = browser.session
        const owned = { keys: keys.list(accountCaller(accountId)), grants: grants.list(accountId) }
        return overviewPage(browser, {
          account: { id: accountId, label: accountLabel(queries, accountId) },
          ...owned,
          names: await namesFor(accountId, [...owned.keys, ...owned.grants].map(credentialScope)),
          browsers: (await sessions()).list(accountId),
          done: noticeOf(new URL(request.url).searchParams, browser),
        })
      }),
      PAGE,
    )
    .post(
      '/keys/:id/reveal',
      pageRoute(async (request, { id }) => {
        const { browser } = await browserRequests.form(request)
        const key = keyOf(browser, id)
        return revealPage(browser, key, keys.plaintext(key.id))
      }),
      PAGE,
    )
    .get('/keys/:id/reveal', backToList, PAGE)
    .get(
      '/keys/:id/delete',
      pageRoute(async (request, { id }) => {
        const browser = await browserRequests.requireSession(request)
        const key = keyOf(browser, id)
        return deletePage(browser, key, await namesFor(browser.session.accountId, [credentialScope(key)]))
      }),
      PAGE,
    )
    .post(
      '/keys/:id/delete',
      pageRoute(async (request, { id = '' }) => {
        const { browser } = await browserRequests.form(request)
        keys.delete(accountCaller(browser.session.accountId), id)
        return done('key-deleted', browser)
      }),
      PAGE,
    )
    .post(
      '/clients/:id/revoke',
      pageRoute(async (request, { id = '' }) => {
        const { browser } = await browserRequests.form(request)
        return done('client-revoked', browser, grants.revoke(browser.session.accountId, id))
      }),
      PAGE,
    )
    .post(
      '/other-browsers/signout',
      pageRoute(async (request) => {
        const { browser } = await browserRequests.form(request)
        ;(await sessions()).endOthers(browser.session)
        return done('browsers-signed-out', browser)
      }),
      PAGE,
    )
    .post(
      '/browsers/:id/signout',
      pageRoute(async (request, { id = '' }) => {
        const { browser } = await browserRequests.form(request)
        const { session, origin } = browser
        if (!(await sessions()).end(session.accountId, id)) throw notFound(`The browser "${id}"`)
        if (id !== session.id) return done('browser-signed-out', browser)
        return redirectResponse('/signin?done=signed-out', { 'set-cookie': expiredCookie(origin) })
      }),
      PAGE,
    )
}

/** Reports of completed actions, keyed by their word in the address of the page. */
const DONE = {
  'key-deleted': 'The key is deleted. It opens nothing any more.',
  'client-revoked': 'The program is not let in any more.',
  'browser-signed-out': 'The browser is signed out.',
  'browsers-signed-out': 'All other browsers are signed out.',
} as const

/** The word for a completed action. */
type DoneAction = keyof typeof DONE

/**
 * Returns the query that makes the page report a completed action.
 *
 * @param program the name of the client whose access ended
 */
function noticeQuery(what: DoneAction, browser: SignedInRequest, program?: string): string {
  const named = program === undefined ? {} : { program, proof: proofOf(program, browser) }
  return `?${new URLSearchParams({ done: what, ...named })}`
}

/** Returns the report of the completed action, or undefined if the query names no known one. */
function noticeOf(query: URLSearchParams, browser: SignedInRequest): Html | undefined {
  const word = query.get('done') ?? ''
  if (!Object.hasOwn(DONE, word)) return undefined
  const program = query.get('program')
  // A forged link cannot put its own text on this page.
  const isOwn = program !== null && isSameText(query.get('proof') ?? '', proofOf(program, browser))
  if (word === 'client-revoked' && isOwn) {
    return html`The program ${quotedName(program)} is not let in any more.`
  }
  return html`${DONE[word as DoneAction]}`
}

/** Proves that berth itself sent the browser of this session to a name. */
const proofOf = (program: string, { csrf }: SignedInRequest): string =>
  createHmac('sha256', csrf).update(`ended ${program}`).digest('base64url')
