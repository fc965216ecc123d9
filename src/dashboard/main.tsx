import { render } from 'preact'
import { ROOT_ID } from '../http/dashboard/root.ts'
import { readContext } from './api/session.ts'
import { Dashboard, DashboardProvider } from './dashboard.ts'
import { DashboardFrame } from './frame/frame.tsx'
import { ROUTES } from './routes.ts'

const root = document.getElementById(ROOT_ID)
if (!root) throw new Error('The page has no place for the dashboard.')
const dashboard = new Dashboard(readContext(root), ROUTES)
// Before anything is drawn: lists load when the stream of changes is open.
dashboard.start()
root.replaceChildren()
render(
  <DashboardProvider value={dashboard}>
    <DashboardFrame />
  </DashboardProvider>,
  root,
)
