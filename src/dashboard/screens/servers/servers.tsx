import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Id } from '../../components/copy.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { formatCredits, UsageMeters, useUsage } from '../../components/usage-meters.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ServerUsage } from '../../store/live-usage.ts'
import type { Server } from '../../store/store.ts'
import { CreateServer } from './create-server.tsx'
import { FirstRun } from './first-run.tsx'
import { ServerMenu } from './server-menu.tsx'

/** All servers of the account. */
export default function Servers() {
  const { store, router } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const sought = (router.query.value.get('q') ?? '').toLowerCase()
  const { list } = store.servers
  const usage = useUsage()
  return (
    <Page
      title="Servers"
      isFull
      actions={
        list.value.length > 0 && (
          <>
            <Search label="Search servers" />
            <Button isNew look="primary" icon="plus" onClick={() => setCreating(true)}>
              Create a server
            </Button>
          </>
        )
      }
    >
      <Loaded of={store.servers}>
        {(servers) => {
          if (servers.length === 0) return <FirstRun />
          const shown = servers.filter((server) => matches(server, sought))
          if (shown.length === 0) return <Empty title={`No server matches “${sought}”`} />
          return (
            <div class="table servers">
              <div class="row head" aria-hidden="true">
                <span>Server</span>
                <span>State</span>
                <span>Size</span>
                <span>Address</span>
                <span>CPU</span>
                <span>Memory</span>
                <span>Storage</span>
                <span class="number">Credits</span>
                <span>Last use</span>
                <span />
              </div>
              <VirtualList items={shown} rowHeight={48} keyOf={({ id }) => id} label="Servers">
                {(server) => <ServerRow server={server} usage={usage.get(server.id)} />}
              </VirtualList>
            </div>
          )
        }}
      </Loaded>
      {isCreating && <CreateServer onClose={() => setCreating(false)} />}
    </Page>
  )
}

const matches = ({ id, task, status, publicUrl }: Server, sought: string): boolean =>
  `${id} ${task} ${status} ${publicUrl ?? ''}`.toLowerCase().includes(sought)

function ServerRow({ server, usage }: { server: Server; usage: ServerUsage | undefined }) {
  const { id, task, status, tier, publicUrl } = server
  // It is charged by the second, and known when it is measured.
  const credits = usage?.credits_used ?? server.creditsUsed
  return (
    <div class="row">
      <span class="cell main">
        <a class="row-link" href={`/dashboard/servers/${id}`}>
          <bdi>{task || id}</bdi>
        </a>
        <Id id={id} isShown={task === ''} />
      </span>
      <span class="cell">
        <State of={status} />
      </span>
      <span class="cell quiet">{tier}</span>
      <span class="cell">
        {publicUrl === null ? (
          <span class="quiet">not published</span>
        ) : (
          <a href={publicUrl} target="_blank" rel="noopener noreferrer">
            {publicUrl.replace(/^https?:\/\/|\/$/g, '')}
          </a>
        )}
      </span>
      <UsageMeters server={server} usage={usage} />
      <span class="cell number">{formatCredits(credits)}</span>
      <span class="cell quiet">{usage ? <Time at={usage.last_used_at} /> : '–'}</span>
      <span class="cell end">
        <ServerMenu server={server} />
      </span>
    </div>
  )
}
