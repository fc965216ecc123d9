import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Search } from '../../components/search.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Build, Server, Task } from '../../store/store.ts'
import { runBuild } from '../builds/run-build.ts'
import { GoalDialog } from '../tasks/goal-dialog.tsx'
import { GoalList } from '../tasks/goal-list.tsx'
import { runTask } from '../tasks/run-task.ts'

/** What differs between tasks and builds. */
const KINDS = {
  tasks: {
    action: 'Run a task',
    none: 'No tasks on this server',
    about:
      'A task is a goal that an agent works on inside the server: it runs commands, writes files and asks you.',
    example: 'Add a health check to the app',
    run: runTask,
  },
  builds: {
    action: 'Run a build',
    none: 'No builds on this server',
    about: 'A build turns a goal into an app with a URL, in six phases.',
    example: 'A landing page for a bakery',
    run: runBuild,
  },
} as const

/** The tasks of a server. */
export function ServerTasks({ server }: { server: Server }) {
  const { store } = useDashboard()
  return <Loaded of={store.tasks}>{(tasks) => <Goals noun="tasks" server={server} all={tasks} />}</Loaded>
}

/** The builds of a server. */
export function ServerBuilds({ server }: { server: Server }) {
  const { store } = useDashboard()
  return <Loaded of={store.builds}>{(builds) => <Goals noun="builds" server={server} all={builds} />}</Loaded>
}

/** Those of a server, with a button for another. */
function Goals({
  noun,
  server,
  all,
}: {
  noun: 'tasks' | 'builds'
  server: Server
  all: readonly (Task | Build)[]
}) {
  const dashboard = useDashboard()
  const [isAsking, setAsking] = useState(false)
  const { action, none, about, example, run } = KINDS[noun]
  const items = all.filter(({ serverId }) => serverId === server.id)
  const button = (
    <Button look={items.length === 0 ? 'primary' : 'plain'} icon="plus" onClick={() => setAsking(true)}>
      {action}
    </Button>
  )
  return (
    <>
      {items.length === 0 ? (
        <Empty title={none}>
          <p>{about}</p>
          <p>{button}</p>
        </Empty>
      ) : (
        <>
          <div class="actions above-table">
            <Search label={`Search ${noun}`} />
            {button}
          </div>
          <GoalList noun={noun} items={items} isOfServer />
        </>
      )}
      {isAsking && (
        <GoalDialog
          title={action}
          example={example}
          noun={noun}
          serverId={server.id}
          onRun={(serverId, goal) => run(dashboard, serverId, goal)}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  )
}
