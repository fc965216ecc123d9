import { runBuild } from '../components/begin.ts'
import { GoalsScreen } from '../components/goals.tsx'
import { useDashboard } from '../dashboard.ts'

/** All builds of the account. */
export default function BuildsScreen() {
  const dashboard = useDashboard()
  return (
    <GoalsScreen
      of={dashboard.store.builds}
      noun="builds"
      one="build"
      example="A landing page for a bakery"
      onRun={(serverId, goal) => runBuild(dashboard, serverId, goal)}
    >
      A build turns a goal into an app with a URL, in six phases.
    </GoalsScreen>
  )
}
