import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { useDashboard } from '../../dashboard.ts'
import { GoalDialog } from '../tasks/goal-dialog.tsx'
import { GoalList } from '../tasks/goal-list.tsx'
import { runBuild } from './run-build.ts'

/** All builds of the account. */
export default function Builds() {
  const dashboard = useDashboard()
  const { store } = dashboard
  const [isAsking, setAsking] = useState(false)
  const run = (
    <Button isNew look="primary" icon="plus" onClick={() => setAsking(true)}>
      Run a build
    </Button>
  )
  return (
    <Page
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
    </Page>
  )
}
