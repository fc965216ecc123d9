import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import type { Loadable } from '../store/collection.ts'
import type { Build, Task } from '../store/store.ts'
import { Button } from './button.tsx'
import { Id, ServerLink } from './copy.tsx'
import { FormDialog } from './dialog.tsx'
import { ServerField, TextField } from './field.tsx'
import { Search } from './filters.tsx'
import { CommandLines, shellQuoted } from './http.tsx'
import { Empty, Loaded, ScreenPage } from './page.tsx'
import { State } from './state.tsx'
import { goalTitle, reasonOf } from './text.ts'
import { Time } from './time.tsx'
import { VirtualList } from './virtual-list.tsx'

/** Properties of a list of tasks or builds. */
interface GoalListProps {
  noun: 'tasks' | 'builds'
  items: readonly (Task | Build)[]
  /** Whether all are of one server, which is then not named. */
  isOfServer?: boolean
}

type Stated = Pick<Task, 'status' | 'result'> | Pick<Build, 'status' | 'steps'>

/** The state of a task or a build. */
const StateOf = ({ item }: { item: Stated }) =>
  'steps' in item && isIdleBuild(item) ? (
    <State of="nothing implemented" look="waiting" />
  ) : (
    <State of={item.status} look={item.status === 'running' ? 'active' : undefined} />
  )

/** Why a task failed. */
function Reason({ item }: { item: Stated }) {
  const reason = 'steps' in item ? null : reasonOf(item)
  if (reason === null) return null
  return (
    <bdi class="quiet" title={reason}>
      {reason}
    </bdi>
  )
}

/** A list of tasks or builds, those that match the search of the address. */
export function GoalList({ noun, items, isOfServer = false }: GoalListProps) {
  const { router } = useDashboard()
  const sought = (router.query.value.get('q') ?? '').toLowerCase()
  const shown = items.filter(({ id, goal, status }) =>
    `${id} ${goal} ${status}`.toLowerCase().includes(sought),
  )
  if (shown.length === 0) return <Empty title={`Nothing matches “${sought}”`} />
  return (
    <div class={`table goals${isOfServer ? ' of-server' : ''}`}>
      <div class="row head" aria-hidden="true">
        <span>Goal</span>
        <span>State</span>
        {!isOfServer && <span>Server</span>}
        <span>Began</span>
      </div>
      <VirtualList items={shown} rowHeight={48} keyOf={({ id }) => id} label={noun}>
        {({ id, goal, serverId, createdAt, ...item }) => (
          <div class="row">
            <span class="cell main">
              <a class="row-link" href={`/dashboard/${noun}/${id}`}>
                <bdi title={goal}>{goalTitle(goal)}</bdi>
              </a>
              <Id id={id} /> <Reason item={item} />
            </span>
            <span class="cell">
              <StateOf item={item} />
            </span>
            {!isOfServer && (
              <span class="cell">
                <ServerLink id={serverId} />
              </span>
            )}
            <span class="cell quiet">
              <Time at={createdAt} />
            </span>
          </div>
        )}
      </VirtualList>
    </div>
  )
}

/** Properties of the screen of all tasks, or of all builds. */
interface GoalsScreenProps extends Pick<GoalDialogProps, 'noun' | 'example' | 'onRun'> {
  of: Loadable<Task | Build>
  /** What one is called. */
  one: 'task' | 'build'
  /** What one is, shown while there is none. */
  children: ComponentChildren
}

/** The screen of all tasks, or of all builds, of the account. */
export function GoalsScreen({ of, noun, one, example, children, onRun }: GoalsScreenProps) {
  const [isAsking, setAsking] = useState(false)
  const run = (
    <Button isNew look="primary" icon="plus" onClick={() => setAsking(true)}>
      Run a {one}
    </Button>
  )
  const actions = of.list.value.length > 0 && (
    <>
      <Search label={`Search ${noun}`} />
      {run}
    </>
  )
  return (
    <ScreenPage title={noun === 'tasks' ? 'Tasks' : 'Builds'} isFull actions={actions}>
      <Loaded of={of}>
        {(items) =>
          items.length === 0 ? (
            <Empty title={`No ${noun} yet`}>
              <p>{children}</p>
              <p>{run}</p>
            </Empty>
          ) : (
            <GoalList noun={noun} items={items} />
          )
        }
      </Loaded>
      {isAsking && (
        <GoalDialog title={`Run a ${one}`} {...{ example, noun, onRun }} onClose={() => setAsking(false)} />
      )}
    </ScreenPage>
  )
}

/** Properties of the question for a goal. */
interface GoalDialogProps {
  title: string
  /** The text in the empty field. */
  example: string
  /** The noun of the command line and of the path. */
  noun: 'tasks' | 'builds'
  /** The server to begin with. */
  serverId?: string | undefined
  /** The goal to begin with. */
  goal?: string
  onRun: (serverId: string, goal: string) => Promise<void>
  onClose: () => void
}

/** Asks for a goal in plain words, and for the server that it is reached on. */
export function GoalDialog({
  title,
  example,
  noun,
  serverId,
  goal: first = '',
  onRun,
  onClose,
}: GoalDialogProps) {
  const { store, context, health } = useDashboard()
  const servers = store.servers.open().list.value
  const [goal, setGoal] = useState(first)
  const [chosen, setChosen] = useState(serverId ?? '')
  const server = chosen || servers[0]?.id || ''
  return (
    <FormDialog
      title={title}
      action="Run"
      isDisabled={server === ''}
      onSubmit={() => onRun(server, goal)}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth ${noun} run ${shellQuoted(goal)} --server ${server}`}
          method="POST"
          path={`/servers/${server}/${noun}`}
          body={{ goal }}
        />
      }
    >
      <TextField
        name="goal"
        label="Goal"
        rows={5}
        value={goal}
        onValue={setGoal}
        isRequired
        placeholder={example}
        hint={
          health.value.value?.agent === 'scripted' && (
            <>
              The scripted agent obeys lines such as <code>run: npm test</code>, <code>ask: Which one?</code>,{' '}
              <code>{'write: a.txt <<< text'}</code>; other goals follow a{' '}
              <a href="/docs/guide/scenarios">scenario</a>
              {context.is_admin && (
                <>
                  {' '}
                  of <a href="/dashboard/controls/scenarios">Test controls</a>
                </>
              )}
              .
            </>
          )
        }
      />
      <ServerField value={server} onValue={setChosen}>
        <p class="notice">
          There is no server yet. <a href="/dashboard/servers">Create one</a> first.
        </p>
      </ServerField>
    </FormDialog>
  )
}

/** Reports whether a build has ended without an agent that could work on its goal. */
export const isIdleBuild = ({ status, steps }: Pick<Build, 'status' | 'steps'>): boolean =>
  status === 'completed' && steps.some(({ skipped }) => skipped === true)
