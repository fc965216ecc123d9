import { Id, serverName } from '../../components/copy.tsx'
import { Empty } from '../../components/empty.tsx'
import { reasonOf, titleOf } from '../../components/goal.ts'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Build, Task } from '../../store/store.ts'
import { isIdle } from '../builds/idle.ts'

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
  'steps' in item && isIdle(item) ? (
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
  const { router, store } = useDashboard()
  const sought = (router.query.value.get('q') ?? '').toLowerCase()
  const shown = items.filter(({ id, goal, status }) =>
    `${id} ${goal} ${status}`.toLowerCase().includes(sought),
  )
  const servers = store.servers.open()
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
                <bdi title={goal}>{titleOf(goal)}</bdi>
              </a>
              <Id id={id} /> <Reason item={item} />
            </span>
            <span class="cell">
              <StateOf item={item} />
            </span>
            {!isOfServer && (
              <span class="cell">
                <a href={`/dashboard/servers/${serverId}`}>
                  <bdi>{serverName(serverId, servers.get(serverId)?.task)}</bdi>
                </a>
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
