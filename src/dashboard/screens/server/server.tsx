import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import { runBuild, runTask } from '../../components/begin.ts'
import { Button } from '../../components/button.tsx'
import { Id, serverLabel } from '../../components/copy.tsx'
import { Search } from '../../components/filters.tsx'
import { GoalDialog, GoalList } from '../../components/goals.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { HoldButton } from '../../components/live-list.tsx'
import { Empty, Failure, Loaded, Loading, ScreenPage, Tabs } from '../../components/page.tsx'
import { bytesText, goalTitle } from '../../components/text.ts'
import { Time } from '../../components/time.tsx'
import { formatCredits, ServerState, UsageMeters, useUsage } from '../../components/usage-meters.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../router.ts'
import type { Build, Server, Task } from '../../store/store.ts'
import { ExecutionState, Took } from '../execution.tsx'
import { CreateProject, ProjectList } from '../projects.tsx'
import { Filters } from '../requests/filters.tsx'
import { RequestList, useRequests } from '../requests/requests.tsx'
import { ServerMenu } from '../servers.tsx'
import { CommandsTab } from './commands.tsx'
import { DeploymentTab } from './deployment.tsx'
import { FaultsTab, ServerFaultNotices } from './faults.tsx'
import { FilesView } from './files.tsx'
import { PlaceFact, PlaceNotice, usePlace } from './place.tsx'
import { Processes } from './processes.tsx'
import { Secrets } from './secrets.tsx'
import { TerminalsView } from './terminals.tsx'

/** A part of the screen of a server. */
interface Part {
  /** The last segment of its address; empty for the first. */
  readonly tab: string
  readonly label: string
  /** Whether only the instance's owner may see it. */
  readonly isAdmin?: boolean
  readonly Content: ComponentType<{ server: Server }>
}

/** The parts, in order. */
const PARTS: readonly Part[] = [
  { tab: '', label: 'Terminal', Content: TerminalsView },
  { tab: 'commands', label: 'Commands', Content: CommandsTab },
  { tab: 'executions', label: 'Executions', Content: Executions },
  { tab: 'files', label: 'Files', Content: FilesView },
  { tab: 'processes', label: 'Processes', Content: Processes },
  { tab: 'projects', label: 'Projects', Content: ServerProjects },
  { tab: 'deployment', label: 'Deployment', Content: DeploymentTab },
  { tab: 'tasks', label: 'Tasks', Content: ServerTasks },
  { tab: 'builds', label: 'Builds', Content: ServerBuilds },
  { tab: 'secrets', label: 'Secrets', Content: Secrets },
  { tab: 'faults', label: 'Faults', isAdmin: true, Content: FaultsTab },
  { tab: 'requests', label: 'Requests', isAdmin: true, Content: ServerRequests },
]

/** The current usage of the server, its cost, the time of its last use, and its age. */
function ServerUsage({ server }: { server: Server }) {
  const usage = useUsage(server.id).get(server.id)
  const place = usePlace(server)
  return (
    <div class="server-usage">
      <PlaceNotice place={place} />
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
        <PlaceFact place={place} />
      </p>
    </div>
  )
}

/** A server: its terminals, files, processes and everything that belongs to it. */
export default function ServerScreen({ params }: ScreenProps) {
  const { store, router, context } = useDashboard()
  const { serverId = '', tab = '' } = params
  const usage = useUsage(serverId).get(serverId)
  const servers = store.servers.open()
  const server = servers.get(serverId)
  const state = servers.state.value
  if (!server) {
    if (state instanceof Error) return <Failure error={state} retry={() => servers.load()} />
    if (state !== 'ready') return <Loading />
    return (
      <ScreenPage title="No such server">
        <Empty title="This server is not there">
          <p>
            It was deleted, or belongs to another account. <a href="/dashboard/servers">All servers</a>
          </p>
        </Empty>
      </ScreenPage>
    )
  }
  const base = `/dashboard/servers/${server.id}`
  const hrefOf = (part: Part): string => (part.tab === '' ? base : `${base}/${part.tab}`)
  const parts = PARTS.filter(({ isAdmin }) => !isAdmin || context.is_admin)
  const part = parts.find((one) => one.tab === tab) ?? parts[0]
  return (
    <ScreenPage
      title={serverLabel(server.id, server.task)}
      isFull
      above={<a href="/dashboard/servers">Servers</a>}
      beside={
        <>
          <ServerState status={server.status} usage={usage} />
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
    </ScreenPage>
  )
}

/** The projects of a server. */
function ServerProjects({ server }: { server: Server }) {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const create = (
    <Button icon="plus" onClick={() => setCreating(true)}>
      Create a project
    </Button>
  )
  return (
    <>
      <Loaded of={store.projects}>
        {(all) => {
          const projects = all.filter(({ server_id: serverId }) => serverId === server.id)
          if (projects.length === 0)
            return (
              <Empty title="No projects on this server">
                <p>{create}</p>
              </Empty>
            )
          return (
            <>
              <div class="actions above-table">{create}</div>
              <ProjectList projects={projects} isOfServer />
            </>
          )
        }}
      </Loaded>
      {isCreating && <CreateProject serverId={server.id} onClose={() => setCreating(false)} />}
    </>
  )
}

/** The requests about a server, live, the newest at the top. */
function ServerRequests({ server }: { server: Server }) {
  const requests = useRequests(server.id)
  return (
    <>
      <div class="actions above-table">
        <Search label="Search requests" />
        <Filters isOfServer />
        <HoldButton held={requests.held} />
      </div>
      <RequestList requests={requests} />
    </>
  )
}

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
function ServerTasks({ server }: { server: Server }) {
  const { store } = useDashboard()
  return <Loaded of={store.tasks}>{(tasks) => <Goals noun="tasks" server={server} all={tasks} />}</Loaded>
}

/** The builds of a server. */
function ServerBuilds({ server }: { server: Server }) {
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

/** The executions of a server: commands that run on without the client that started them, the newest first. */
function Executions({ server }: { server: Server }) {
  const { store } = useDashboard()
  const commands = `/dashboard/servers/${server.id}/commands`
  return (
    <Loaded of={store.executions(server.id)}>
      {(executions) =>
        executions.length === 0 ? (
          <Empty title="No executions on this server">
            <p>
              An execution is a command that runs on by itself: one that was started in the background, or
              that an assistant left after 45 s. It is listed for 10 minutes after its end.
            </p>
            <p>
              <a class="button plain" href={commands}>
                Type a command
              </a>
            </p>
            <CommandLines
              berth={`berth exec --detach ${server.id} -- ${shellQuoted('npm test')}`}
              method="POST"
              path={`/servers/${server.id}/exec`}
              body={{ command: 'npm test', detach: true }}
            />
          </Empty>
        ) : (
          <div class="table executions">
            <div class="row head" aria-hidden="true">
              <span>Command</span>
              <span>State</span>
              <span>Printed</span>
              <span>Took</span>
              <span>Began</span>
            </div>
            <VirtualList items={executions} rowHeight={48} keyOf={({ id }) => id} label="Executions">
              {(execution) => (
                <div class="row">
                  <span class="cell">
                    <a class="row-link" href={`/dashboard/servers/${server.id}/executions/${execution.id}`}>
                      <bdi title={execution.command}>
                        <code>{goalTitle(execution.command)}</code>
                      </bdi>
                    </a>
                  </span>
                  <span class="cell">
                    <ExecutionState of={execution} />
                  </span>
                  <span class="cell quiet">
                    {execution.status !== 'running' &&
                      bytesText(execution.stdoutBytes + execution.stderrBytes)}
                  </span>
                  <span class="cell quiet">
                    <Took of={execution} />
                  </span>
                  <span class="cell quiet">
                    <Time at={execution.startedAt} />
                  </span>
                </div>
              )}
            </VirtualList>
          </div>
        )
      }
    </Loaded>
  )
}
