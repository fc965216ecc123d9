import { render } from 'preact'
import { ROOT_ID } from '../http/dashboard/root.ts'
import { readContext } from './context.ts'
import { Dashboard, DashboardProvider } from './dashboard.ts'
import { Frame } from './frame/frame.tsx'
import { ROUTES } from './routes.ts'

const root = document.getElementById(ROOT_ID)
if (!root) throw new Error('The page has no place for the dashboard.')
const dashboard = new Dashboard(readContext(root), ROUTES)
root.replaceChildren()
render(
  <DashboardProvider value={dashboard}>
    <Frame />
  </DashboardProvider>,
  root,
)
dashboard.start()
