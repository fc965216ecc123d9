import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Dialog } from '../../components/dialog.tsx'
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
    <Dialog title="Create a server" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void dashboard.notices.attempt(() => createServer(dashboard, body)).then((ok) => ok && onClose())
        }}
      >
        <label class="field">
          <span>Label</span>
          <input
            type="text"
            value={task}
            placeholder="shop"
            onInput={({ currentTarget }) => setTask(currentTarget.value)}
          />
        </label>
        <fieldset class="choice">
          <legend>Size</legend>
          {TIERS.map((one) => (
            <label key={one}>
              <input type="radio" name="tier" checked={tier === one} onChange={() => setTier(one)} />
              {one}
            </label>
          ))}
        </fieldset>
        <div class="actions">
          <Button type="submit" look="primary">
            Create
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
        <CommandLines
          berth={`berth servers create${label}${tier === 'small' ? '' : ` --tier ${tier}`}`}
          method="POST"
          path="/servers"
          body={body}
        />
      </form>
    </Dialog>
  )
}

/** Creates a server, opens a terminal on it and goes there. */
export async function createServer(
  dashboard: ReturnType<typeof useDashboard>,
  body: { task?: string; tier?: (typeof TIERS)[number] } = {},
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
