import { useState } from 'preact/hooks'
import type { ServerUsage } from '../../resources/usage/model.ts'
import { openTerminal } from '../components/begin.ts'
import { Button, Menu, type MenuItem } from '../components/button.tsx'
import { CopyButton, Id, serverLabel } from '../components/copy.tsx'
import { Confirm, FormDialog } from '../components/dialog.tsx'
import { TextField } from '../components/field.tsx'
import { Search } from '../components/filters.tsx'
import { CommandLines, shellQuoted } from '../components/http.tsx'
import { Empty, Loaded, ScreenPage } from '../components/page.tsx'
import { Time } from '../components/time.tsx'
import { formatCredits, ServerState, UsageMeters, useUsage } from '../components/usage-meters.tsx'
import { VirtualList } from '../components/virtual-list.tsx'
import { useDashboard } from '../dashboard.ts'
import type { Server } from '../store/store.ts'

/** All servers of the account. */
export default function ServersScreen() {
  const { store, router } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const sought = (router.query.value.get('q') ?? '').toLowerCase()
  const { list } = store.servers
  const usage = useUsage()
  return (
    <ScreenPage
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
    </ScreenPage>
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
        <ServerState status={status} usage={usage} />
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

/** The sizes of servers. */
const TIERS = ['small', 'medium', 'large'] as const

/** Asks for the label and the size of a server, creates it and opens its terminal. */
function CreateServer({ onClose }: { onClose: () => void }) {
  const dashboard = useDashboard()
  const [task, setTask] = useState('')
  const [tier, setTier] = useState<(typeof TIERS)[number]>('small')
  const body = { ...(task !== '' && { task }), tier }
  const label = task === '' ? '' : ` ${shellQuoted(task)}`
  return (
    <FormDialog
      title="Create a server"
      action="Create"
      onSubmit={() => createServer(dashboard, body)}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth servers create${label}${tier === 'small' ? '' : ` --tier ${tier}`}`}
          method="POST"
          path="/servers"
          body={body}
        />
      }
    >
      <TextField name="task" label="Label" value={task} onValue={setTask} placeholder="shop" />
      <fieldset class="choice">
        <legend>Size</legend>
        {TIERS.map((one) => (
          <label key={one}>
            <input type="radio" name="tier" checked={tier === one} onChange={() => setTier(one)} />
            {one}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}

/** Creates a server, and opens a terminal on it. */
async function createServer(
  dashboard: ReturnType<typeof useDashboard>,
  body: { task?: string; tier?: (typeof TIERS)[number] },
): Promise<void> {
  const { api, store, router } = dashboard
  const { id } = await api.call('servers.create', { body })
  const [{ server }, terminal] = await Promise.all([
    api.call('servers.get', { params: { serverId: id } }),
    openTerminal(dashboard, id),
  ])
  store.servers.add(server)
  router.go(`/dashboard/servers/${id}?terminal=${terminal.id}`)
}

/** The actions on a server. */
export function ServerMenu({ server, onDeleted }: { server: Server; onDeleted?: () => void }) {
  const { api, notices, store } = useDashboard()
  const [asked, setAsked] = useState<'rename' | 'delete' | 'restart' | 'stop' | null>(null)
  const { id, task, status } = server
  const name = serverLabel(id, task)
  const start = async (): Promise<void> => {
    await api.call('servers.act', { params: { serverId: id }, body: { action: 'start' } })
    notices.done(`${name} runs.`, { label: 'Show it', href: `/dashboard/servers/${id}` })
  }
  const items: MenuItem[] = [
    ...(status === 'sleeping'
      ? [{ label: 'Start', icon: 'play' as const, run: start }]
      : [
          { label: 'Restart', icon: 'restart' as const, run: () => setAsked('restart') },
          { label: 'Stop', icon: 'stop' as const, run: () => setAsked('stop') },
        ]),
    { label: 'Rename', icon: 'file', run: () => setAsked('rename') },
    { label: 'Delete', icon: 'trash', isDangerous: true, run: () => setAsked('delete') },
  ]
  return (
    <>
      <Menu label={`Actions on ${name}`} items={items} />
      {asked === 'rename' && <Rename server={server} onClose={() => setAsked(null)} />}
      {(asked === 'restart' || asked === 'stop') && (
        <EndProcesses server={server} action={asked} onClose={() => setAsked(null)} />
      )}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete the server"
          typed={task || id}
          onClose={() => setAsked(null)}
          commands={
            <CommandLines berth={`berth servers delete ${id}`} method="DELETE" path={`/servers/${id}`} />
          }
          onConfirm={async () => {
            await api.call('servers.delete', { params: { serverId: id } })
            store.servers.remove(id)
            onDeleted?.()
            notices.done(`${name} was deleted.`)
          }}
        >
          <p>Its files, projects, tasks and builds are gone with it. They cannot be brought back.</p>
        </Confirm>
      )}
    </>
  )
}

/** Asks before a server is restarted or stopped, which ends what runs on it. */
function EndProcesses({
  server: { id, task },
  action,
  onClose,
}: {
  server: Server
  action: 'restart' | 'stop'
  onClose: () => void
}) {
  const { api, notices } = useDashboard()
  const name = serverLabel(id, task)
  const processes = useUsage(id).get(id)?.processes
  const act = async (wanted: 'start' | 'restart' | 'stop'): Promise<void> => {
    await api.call('servers.act', { params: { serverId: id }, body: { action: wanted } })
  }
  return (
    <Confirm
      title={action === 'stop' ? `Stop ${name}?` : `Restart ${name}?`}
      action={action === 'stop' ? 'Stop the server' : 'Restart the server'}
      onClose={onClose}
      onConfirm={async () => {
        await act(action)
        if (action === 'restart') return notices.done(`${name} was restarted.`)
        notices.done(`${name} sleeps.`, {
          label: 'Start it',
          run: () => void notices.attempt(() => act('start')),
        })
      }}
      commands={
        <CommandLines
          berth={`berth servers ${action} ${id}`}
          method="POST"
          path={`/servers/${id}/actions`}
          body={{ action }}
        />
      }
    >
      <p>
        {processes === 0
          ? 'Nothing runs on it now. '
          : `All that runs on it ends${processes ? `: ${processes} ${processes === 1 ? 'process' : 'processes'} now` : ''}, terminals and tasks too. `}
        {action === 'stop'
          ? 'Its files stay; the next command or task starts it again.'
          : 'Its files stay, and its apps are started again.'}
      </p>
    </Confirm>
  )
}

/** Asks for a new label of a server. */
function Rename({ server, onClose }: { server: Server; onClose: () => void }) {
  const { api } = useDashboard()
  const [task, setTask] = useState(server.task)
  const rename = async (): Promise<void> => {
    await api.call('servers.update', { params: { serverId: server.id }, body: { task } })
  }
  return (
    <FormDialog title="Rename the server" action="Rename" onSubmit={rename} onClose={onClose}>
      <TextField name="task" label="Label" value={task} onValue={setTask} />
    </FormDialog>
  )
}

/** What an instance without a server shows: how to make one, here or by a program. */
export function FirstRun() {
  const dashboard = useDashboard()
  const { base_url: baseUrl } = dashboard.context
  const [key, setKey] = useState<string | null>(null)
  const lines = (shown: string): string[] => [
    `export BERTH_BASE_URL=${baseUrl} BERTH_API_KEY=${shown}`,
    'berth servers create first',
    'berth shell',
  ]
  return (
    <Empty title="No servers yet">
      <p>A server is a machine of its own: files, processes, ports and a URL.</p>
      <p>
        <Button isNew look="primary" icon="plus" onClick={() => createServer(dashboard, { task: 'first' })}>
          Create a server and open its terminal
        </Button>
      </p>
      <p class="quiet">Or from a terminal:</p>
      <ol class="lines">
        {lines(key ?? 'sk_live_…').map((line) => (
          <li class="line" key={line}>
            <code>{line}</code>
            <CopyButton text={line} label="Copy the line" />
          </li>
        ))}
      </ol>
      {key === null && (
        <p>
          <Button onClick={async () => setKey(await newKey(dashboard))}>Create a key for these lines</Button>
        </p>
      )}
    </Empty>
  )
}

/** Creates a key of the whole account. */
async function newKey({ api }: ReturnType<typeof useDashboard>): Promise<string> {
  const { key } = await api.call('keys.create', { body: { label: 'first steps' } })
  return key
}
