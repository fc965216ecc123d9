import { useState } from 'preact/hooks'
import { CommandLines } from '../../components/command-lines.tsx'
import { serverName } from '../../components/copy.tsx'
import { Confirm, FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { Menu, type MenuItem } from '../../components/menu.tsx'
import { useUsage } from '../../components/usage-meters.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'

/** The actions on a server. */
export function ServerMenu({ server, onDeleted }: { server: Server; onDeleted?: () => void }) {
  const { api, notices, store } = useDashboard()
  const [asked, setAsked] = useState<'rename' | 'delete' | 'restart' | 'stop' | null>(null)
  const { id, task, status } = server
  const name = serverName(id, task)
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
  const name = serverName(id, task)
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
