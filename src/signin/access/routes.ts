import { Elysia } from 'elysia'
import { notFound } from '../../errors.ts'
import { accountCaller } from '../../http/caller.ts'
import { labelOf } from '../../resources/accounts/label.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { Queries } from '../../storage/database.ts'
import type { Grants } from '../oauth/grants.ts'
import { redirectAnswer } from '../pages/page.ts'
import { type ReachableParts, reachableOf } from '../reachable.ts'
import { cookieEnding } from '../session/cookie.ts'
import { PAGE, pageRoute } from '../session/page-route.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SignedIn, Visits } from '../session/visits.ts'
import { deletePage, revealPage } from './key-pages.ts'
import { type Done, noticeOf, noticeQuery } from './notice.ts'
import { overviewPage } from './overview-page.ts'
import { isEverything, type Names, namesOf, type Reach, reachOf } from './reach.ts'

/** What the pages of who has access need. */
interface AccessPages extends ReachableParts {
  visits: Visits
  sessions: () => Promise<Sessions>
  grants: Grants
  keys: KeysService
  queries: Queries
}

/** The address stays in the browser when a key has been shown: whoever goes there again finds the list. */
const backToList = (): Response => redirectAnswer('/access')

/** `/access`: what has access to the account of who is signed in, and its end. Things of other accounts are not there. */
export function accessRoutes({ visits, sessions, grants, keys, queries, ...parts }: AccessPages) {
  const done = (what: Done, visit: SignedIn, program?: string): Response =>
    redirectAnswer(`/access${noticeQuery(what, visit, program)}`)
  const keyOf = ({ session }: SignedIn, id = ''): ApiKey => {
    const key = keys.list(accountCaller(session.accountId)).find((one) => one.id === id)
    if (!key) throw notFound(`The API key "${id}"`)
    return key
  }
  /** What the servers and projects are called that something is limited to; read where it is. */
  const namesFor = async (accountId: string, reaches: readonly Reach[]): Promise<Names> =>
    reaches.every(isEverything) ? new Map() : namesOf(await reachableOf(accountId, parts))
  return new Elysia({ name: 'berth/access', prefix: '/access' })
    .get(
      '',
      pageRoute(async (request) => {
        const visit = await visits.signedIn(request)
        const { accountId } = visit.session
        const owned = { keys: keys.list(accountCaller(accountId)), grants: grants.list(accountId) }
        return overviewPage(visit, {
          account: { id: accountId, label: labelOf(queries, accountId) },
          ...owned,
          names: await namesFor(accountId, [...owned.keys, ...owned.grants].map(reachOf)),
          browsers: (await sessions()).list(accountId),
          done: noticeOf(new URL(request.url).searchParams, visit),
        })
      }),
      PAGE,
    )
    .post(
      '/keys/:id/reveal',
      pageRoute(async (request, { id }) => {
        const { visit } = await visits.form(request)
        const key = keyOf(visit, id)
        return revealPage(visit, key, keys.plaintext(key.id))
      }),
      PAGE,
    )
    .get('/keys/:id/reveal', backToList, PAGE)
    .get(
      '/keys/:id/delete',
      pageRoute(async (request, { id }) => {
        const visit = await visits.signedIn(request)
        const key = keyOf(visit, id)
        return deletePage(visit, key, await namesFor(visit.session.accountId, [reachOf(key)]))
      }),
      PAGE,
    )
    .post(
      '/keys/:id/delete',
      pageRoute(async (request, { id = '' }) => {
        const { visit } = await visits.form(request)
        keys.delete(accountCaller(visit.session.accountId), id)
        return done('key-deleted', visit)
      }),
      PAGE,
    )
    .post(
      '/clients/:id/revoke',
      pageRoute(async (request, { id = '' }) => {
        const { visit } = await visits.form(request)
        return done('client-revoked', visit, grants.revoke(visit.session.accountId, id))
      }),
      PAGE,
    )
    .post(
      '/other-browsers/signout',
      pageRoute(async (request) => {
        const { visit } = await visits.form(request)
        ;(await sessions()).endOthers(visit.session)
        return done('browsers-signed-out', visit)
      }),
      PAGE,
    )
    .post(
      '/browsers/:id/signout',
      pageRoute(async (request, { id = '' }) => {
        const { visit } = await visits.form(request)
        const { session, origin } = visit
        if (!(await sessions()).end(session.accountId, id)) throw notFound(`The browser "${id}"`)
        if (id !== session.id) return done('browser-signed-out', visit)
        return redirectAnswer('/signin?done=signed-out', { 'set-cookie': cookieEnding(origin) })
      }),
      PAGE,
    )
}
