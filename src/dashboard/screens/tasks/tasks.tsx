import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { useDashboard } from '../../dashboard.ts'
import { GoalDialog } from './goal-dialog.tsx'
import { GoalList } from './goal-list.tsx'
import { runTask } from './run-task.ts'

/** All tasks of the account. */
export default function Tasks() {
  const dashboard = useDashboard()
  const { store } = dashboard
  const [isAsking, setAsking] = useState(false)
  const run = (
    <Button isNew look="primary" icon="plus" onClick={() => setAsking(true)}>
      Run a task
    </Button>
  )
  return (
    <Page
      title="Tasks"
      isFull
      actions={
        store.tasks.list.value.length > 0 && (
          <>
            <Search label="Search tasks" />
            {run}
          </>
        )
      }
    >
      <Loaded of={store.tasks}>
        {(tasks) =>
          tasks.length === 0 ? (
            <Empty title="No tasks yet">
              <p>
                A task is a goal that an agent works on inside a server: it runs commands, writes files and
                asks you.
              </p>
              <p>{run}</p>
            </Empty>
          ) : (
            <GoalList noun="tasks" items={tasks} />
          )
        }
      </Loaded>
      {isAsking && (
        <GoalDialog
          title="Run a task"
          example="Add a health check to the app"
          noun="tasks"
          onRun={(serverId, goal) => runTask(dashboard, serverId, goal)}
          onClose={() => setAsking(false)}
        />
      )}
    </Page>
  )
}
