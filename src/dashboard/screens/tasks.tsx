import { runTask } from '../components/begin.ts'
import { GoalsScreen } from '../components/goals.tsx'
import { useDashboard } from '../dashboard.ts'

/** All tasks of the account. */
export default function TasksScreen() {
  const dashboard = useDashboard()
  return (
    <GoalsScreen
      of={dashboard.store.tasks}
      noun="tasks"
      one="task"
      example="Add a health check to the app"
      onRun={(serverId, goal) => runTask(dashboard, serverId, goal)}
    >
      A task is a goal that an agent works on inside a server: it runs commands, writes files and asks you.
    </GoalsScreen>
  )
}
