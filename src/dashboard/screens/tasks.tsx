import { useState } from 'preact/hooks'
import { runTask } from '../components/begin.ts'
import { Button } from '../components/button.tsx'
import { Search } from '../components/filters.tsx'
import { GoalDialog, GoalList } from '../components/goals.tsx'
import { Empty, Loaded, ScreenPage } from '../components/page.tsx'
import { useDashboard } from '../dashboard.ts'

/** All tasks of the account. */
export default function TasksScreen() {
  const dashboard = useDashboard()
  const { store } = dashboard
  const [isAsking, setAsking] = useState(false)
  const run = (
    <Button isNew look="primary" icon="plus" onClick={() => setAsking(true)}>
      Run a task
    </Button>
  )
  return (
    <ScreenPage
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
    </ScreenPage>
  )
}
