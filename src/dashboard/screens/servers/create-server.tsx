import { useState } from 'preact/hooks'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { useDashboard } from '../../dashboard.ts'
import { openTerminal } from '../server/terminals/open-terminal.ts'

/** The sizes of servers. */
const TIERS = ['small', 'medium', 'large'] as const

/** Asks for the label and the size of a server, creates it and goes to its terminal. */
export function CreateServer({ onClose }: { onClose: () => void }) {
  const dashboard = useDashboard()
  const [task, setTask] = useState('')
  const [tier, setTier] = useState<(typeof TIERS)[number]>('small')
  const body = { ...(task !== '' && { task }), tier }
  const label = task === '' ? '' : ` ${quoted(task)}`
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

/** Creates a server, opens a terminal on it and goes there. */
export async function createServer(
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
