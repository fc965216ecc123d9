import { render } from 'preact'
import type { RecordedRun } from '../http/dashboard/report-page.ts'
import { RECORDED_ID, ROOT_ID } from '../http/dashboard/root.ts'
import { Dashboard, DashboardProvider } from './dashboard.ts'
import { RecordedObjects } from './report/objects.ts'
import { RecordedApi } from './report/recorded-api.ts'
import { ReportFrame } from './report/report-frame.tsx'
import { reportRoutes } from './report/screens.tsx'
import { HASH_ADDRESS } from './router.ts'

/*
 * The page of a report: the timeline, requests and deliveries of the dashboard over what was recorded of a run. It calls no
 * instance, and no address of it leads elsewhere.
 */

const root = document.getElementById(ROOT_ID)
if (!root) throw new Error('The page has no place for the report.')
const recorded = JSON.parse(document.getElementById(RECORDED_ID)?.textContent ?? '{}') as RecordedRun
const context = { ...recorded.context, nonce: '' }
const objects = new RecordedObjects(recorded.objects)
const dashboard = new Dashboard(context, reportRoutes(recorded), {
  api: new RecordedApi(recorded, objects, context),
  address: HASH_ADDRESS,
  now: () => objects.now,
  before: (change) => objects.before(change),
})
dashboard.router.start()
dashboard.clock.set({ now: context.now, frozen: true, offset_ms: 0 })
dashboard.changes.replay(objects.replay())
dashboard.shortcuts.start()
root.replaceChildren()
render(
  <DashboardProvider value={dashboard}>
    <ReportFrame recorded={recorded} />
  </DashboardProvider>,
  root,
)
