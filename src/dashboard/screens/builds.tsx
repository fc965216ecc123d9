import { useState } from 'preact/hooks'
import { runBuild } from '../components/begin.ts'
import { Button } from '../components/button.tsx'
import { Search } from '../components/filters.tsx'
import { GoalDialog, GoalList } from '../components/goals.tsx'
import { Empty, Loaded, ScreenPage } from '../components/page.tsx'
import { useDashboard } from '../dashboard.ts'

/** All builds of the account. */
export default function BuildsScreen() {
  const dashboard = useDashboard()
  const { store } = dashboard
  const [isAsking, setAsking] = useState(false)
  const run = (
    <Button isNew look="primary" icon="plus" onClick={() => setAsking(true)}>
      Run a build
    </Button>
  )
  return (
    <ScreenPage
      title="Builds"
      isFull
      actions={
        store.builds.list.value.length > 0 && (
          <>
            <Search label="Search builds" />
            {run}
          </>
        )
      }
    >
      <Loaded of={store.builds}>
        {(builds) =>
          builds.length === 0 ? (
            <Empty title="No builds yet">
              <p>A build turns a goal into an app with a URL, in six phases.</p>
              <p>{run}</p>
            </Empty>
          ) : (
            <GoalList noun="builds" items={builds} />
          )
        }
      </Loaded>
      {isAsking && (
        <GoalDialog
          title="Run a build"
          example="A landing page for a bakery"
          noun="builds"
          onRun={(serverId, goal) => runBuild(dashboard, serverId, goal)}
          onClose={() => setAsking(false)}
        />
      )}
    </ScreenPage>
  )
}
