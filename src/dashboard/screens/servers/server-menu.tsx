import { useState } from 'preact/hooks'
import { serverName } from '../../components/copy.tsx'
import { Confirm, FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { Menu, type MenuItem } from '../../components/menu.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'

/** The actions on a server. */
export function ServerMenu({ server, onDeleted }: { server: Server; onDeleted?: () => void }) {
  const { api, notices, store } = useDashboard()
  const [asked, setAsked] = useState<'rename' | 'delete' | null>(null)
  const { id, task, status } = server
  const name = serverName(id, task)
  const act =
    (action: 'start' | 'stop' | 'restart', done: string): MenuItem['run'] =>
    async () => {
      await api.call('servers.act', { params: { serverId: id }, body: { action } })
      notices.done(`${name} ${done}.`)
    }
  const items: MenuItem[] = [
    ...(status === 'sleeping'
      ? [{ label: 'Start', icon: 'play' as const, run: act('start', 'runs') }]
      : [
          { label: 'Restart', icon: 'restart' as const, run: act('restart', 'was restarted') },
          { label: 'Stop', icon: 'stop' as const, run: act('stop', 'sleeps') },
        ]),
    { label: 'Rename', icon: 'file', run: () => setAsked('rename') },
    { label: 'Delete', icon: 'trash', isDangerous: true, run: () => setAsked('delete') },
  ]
  return (
    <>
      <Menu label={`Actions on ${name}`} items={items} />
      {asked === 'rename' && <Rename server={server} onClose={() => setAsked(null)} />}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete the server"
          typed={task || id}
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            await api.call('servers.delete', { params: { serverId: id } })
            store.servers.remove(id)
            notices.done(`${name} was deleted.`)
            onDeleted?.()
          }}
        >
          <p>Its files, projects, tasks and builds are gone with it. They cannot be brought back.</p>
        </Confirm>
      )}
    </>
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
