import { Elysia } from 'elysia'
import { DashboardAssets } from '../../http/dashboard/assets.ts'
import { ASSETS_PATH } from '../../http/dashboard/bundle.ts'
import { dashboardPage } from '../../http/dashboard/page.ts'
import { redirectResponse } from '../../http/pages/page.ts'
import { accountLabel } from '../../resources/accounts/label.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import { type BrowserRequests, PAGE, pageRoute } from '../session/browser-requests.ts'

/** Dependencies of the dashboard's page. */
interface DashboardRoutesOptions {
  browserRequests: BrowserRequests
  keys: KeysService
  queries: Queries
  clock: Clock
  version: string
  dataDir: string
}

/**
 * Serves the dashboard: one page at `/` and at every path below `/dashboard/`, whose script shows what the path
 * names, and the page's files.
 */
export function dashboardRoutes({
  browserRequests,
  keys,
  queries,
  clock,
  version,
  dataDir,
}: DashboardRoutesOptions) {
  const assets = new DashboardAssets()
  const page = pageRoute(async (request) => {
    const { session, csrf, origin } = await browserRequests.requireSession(request)
    const { accountId: id, isAdmin } = session
    const account = { id, label: accountLabel(queries, id) }
    return dashboardPage(
      {
        csrf,
        account,
        session_id: session.id,
        is_admin: isAdmin,
        is_first_account: id === keys.first.accountId(),
        version,
        data_dir: isAdmin ? dataDir : null,
        base_url: origin,
        now: toIso(clock.now()),
      },
      await assets.entry(),
    )
  })
  return (
    new Elysia({ name: 'berth/dashboard' })
      .get(
        `${ASSETS_PATH}:name`,
        async ({ request, params: { name } }) =>
          (await assets.respond(request, name)) ?? new Response('Not found', { status: 404 }),
        PAGE,
      )
      .get('/', page, PAGE)
      // What a person types.
      .get(
        '/dashboard',
        pageRoute(() => redirectResponse('/')),
        PAGE,
      )
      .get('/dashboard/*', page, PAGE)
  )
}
