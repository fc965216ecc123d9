import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Properties of the question for a goal. */
interface GoalDialogProps {
  title: string
  /** What stands in the empty field. */
  example: string
  /** The noun of the command line and of the path. */
  noun: 'tasks' | 'builds'
  /** The server to begin with. */
  serverId?: string | undefined
  onRun: (serverId: string, goal: string) => Promise<void>
  onClose: () => void
}

/** Asks for a goal in plain words, and for the server that it is reached on. */
export function GoalDialog({ title, example, noun, serverId, onRun, onClose }: GoalDialogProps) {
  const { store, notices } = useDashboard()
  const servers = store.servers.open().list.value
  const [goal, setGoal] = useState('')
  const [chosen, setChosen] = useState(serverId ?? '')
  const server = chosen || servers[0]?.id || ''
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(() => onRun(server, goal)).then((ok) => ok && onClose())
        }}
      >
        <label class="field">
          <span>Goal</span>
          <textarea
            required
            rows={5}
            value={goal}
            placeholder={example}
            onInput={({ currentTarget }) => setGoal(currentTarget.value)}
          />
        </label>
        {servers.length === 0 ? (
          <p class="notice">
            There is no server yet. <a href="/dashboard/servers">Create one</a> first.
          </p>
        ) : (
          <label class="field">
            <span>Server</span>
            <select value={server} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
              {servers.map(({ id, task }) => (
                <option key={id} value={id}>
                  {task || id}
                </option>
              ))}
            </select>
          </label>
        )}
        <div class="actions">
          <Button type="submit" look="primary" disabled={server === ''}>
            Run
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
        <CommandLines
          berth={`berth ${noun} run ${quoted(goal)} --server ${server}`}
          method="POST"
          path={`/servers/${server}/${noun}`}
          body={{ goal }}
        />
      </form>
    </Dialog>
  )
}
