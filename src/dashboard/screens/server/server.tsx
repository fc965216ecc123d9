import type { ComponentType } from 'preact'
import { Id, serverName } from '../../components/copy.tsx'
import { Empty } from '../../components/empty.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { State } from '../../components/state.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { formatCredits, UsageMeters, useUsage } from '../../components/usage-meters.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../routing/route.ts'
import type { Server as ServerValue } from '../../store/store.ts'
import { ServerMenu } from '../servers/server-menu.tsx'
import { Commands } from './commands/commands.tsx'
import { Deployment } from './deployment.tsx'
import { Executions } from './executions.tsx'
import { Faults, ServerFaultNotices } from './faults/faults.tsx'
import { Files } from './files/files.tsx'
import { ServerBuilds, ServerTasks } from './goals.tsx'
import { Processes } from './processes/processes.tsx'
import { ServerProjects } from './projects.tsx'
import { ServerRequests } from './requests.tsx'
import { Secrets } from './secrets.tsx'
import { Terminals } from './terminals/terminals.tsx'

/** A part of the screen of a server. */
interface Part {
  /** The last segment of its address; empty for the first. */
  readonly tab: string
  readonly label: string
  /** Whether only the instance's owner may see it. */
  readonly isAdmin?: boolean
  readonly Content: ComponentType<{ server: ServerValue }>
}

/** The parts, in order. */
const PARTS: readonly Part[] = [
  { tab: '', label: 'Terminal', Content: Terminals },
  { tab: 'commands', label: 'Commands', Content: Commands },
  { tab: 'executions', label: 'Executions', Content: Executions },
  { tab: 'files', label: 'Files', Content: Files },
  { tab: 'processes', label: 'Processes', Content: Processes },
  { tab: 'projects', label: 'Projects', Content: ServerProjects },
  { tab: 'deployment', label: 'Deployment', Content: Deployment },
  { tab: 'tasks', label: 'Tasks', Content: ServerTasks },
  { tab: 'builds', label: 'Builds', Content: ServerBuilds },
  { tab: 'secrets', label: 'Secrets', Content: Secrets },
  { tab: 'faults', label: 'Faults', isAdmin: true, Content: Faults },
  { tab: 'requests', label: 'Requests', isAdmin: true, Content: ServerRequests },
]

/** What the server uses now, what it has cost, when it was used, and how old it is. */
function ServerUsage({ server }: { server: ServerValue }) {
  const usage = useUsage(server.id).get(server.id)
  return (
    <div class="server-usage">
      <UsageMeters server={server} usage={usage} hasLimits />
      <p class="server-facts">
        <span>
          <span class="quiet">Cost</span> {formatCredits(usage?.credits_used ?? server.creditsUsed)} credits
        </span>
        <span>
          <span class="quiet">Last used</span> {usage ? <Time at={usage.last_used_at} /> : '–'}
        </span>
        <span>
          <span class="quiet">{server.tier}, created</span> <Time at={server.createdAt} />
        </span>
      </p>
    </div>
  )
}

/** A server: its terminals, files, processes and everything that belongs to it. */
export default function Server({ params }: ScreenProps) {
  const { store, router, context } = useDashboard()
  const { serverId = '', tab = '' } = params
  const servers = store.servers.open()
  const server = servers.get(serverId)
  const state = servers.state.value
  if (!server) {
    if (state instanceof Error) return <Failure error={state} retry={() => servers.load()} />
    if (state !== 'ready') return <Loading />
    return (
      <Page title="No such server">
        <Empty title="This server is not there">
          <p>
            It was deleted, or belongs to another account. <a href="/dashboard/servers">All servers</a>
          </p>
        </Empty>
      </Page>
    )
  }
  const base = `/dashboard/servers/${server.id}`
  const hrefOf = (part: Part): string => (part.tab === '' ? base : `${base}/${part.tab}`)
  const parts = PARTS.filter(({ isAdmin }) => !isAdmin || context.is_admin)
  const part = parts.find((one) => one.tab === tab) ?? parts[0]
  return (
    <Page
      title={serverName(server.id, server.task)}
      isFull
      above={<a href="/dashboard/servers">Servers</a>}
      beside={
        <>
          <State of={server.status} />
          <Id id={server.id} isShown={server.task === ''} />
        </>
      }
      actions={
        <>
          {server.publicUrl !== null && (
            <a class="button plain" href={server.publicUrl} target="_blank" rel="noopener noreferrer">
              Open the deployment
            </a>
          )}
          <ServerMenu server={server} onDeleted={() => router.go('/dashboard/servers')} />
        </>
      }
    >
      {context.is_admin && part?.tab !== 'faults' && <ServerFaultNotices server={server} />}
      <ServerUsage server={server} />
      <Tabs
        label="Parts of the server"
        here={part ? hrefOf(part) : base}
        tabs={parts.map((one) => ({ href: hrefOf(one), label: one.label }))}
      />
      {part && <part.Content server={server} />}
    </Page>
  )
}
