import { useState } from 'preact/hooks'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { ServerField, TextField } from '../../components/field.tsx'
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
  /** The goal to begin with. */
  goal?: string
  onRun: (serverId: string, goal: string) => Promise<void>
  onClose: () => void
}

/** Asks for a goal in plain words, and for the server that it is reached on. */
export function GoalDialog({
  title,
  example,
  noun,
  serverId,
  goal: first = '',
  onRun,
  onClose,
}: GoalDialogProps) {
  const { store, context, health } = useDashboard()
  const servers = store.servers.open().list.value
  const [goal, setGoal] = useState(first)
  const [chosen, setChosen] = useState(serverId ?? '')
  const server = chosen || servers[0]?.id || ''
  return (
    <FormDialog
      title={title}
      action="Run"
      isDisabled={server === ''}
      onSubmit={() => onRun(server, goal)}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth ${noun} run ${quoted(goal)} --server ${server}`}
          method="POST"
          path={`/servers/${server}/${noun}`}
          body={{ goal }}
        />
      }
    >
      <TextField
        name="goal"
        label="Goal"
        rows={5}
        value={goal}
        onValue={setGoal}
        isRequired
        placeholder={example}
        hint={
          health.value.value?.agent === 'scripted' && (
            <>
              The scripted agent obeys lines such as <code>run: npm test</code>, <code>ask: Which one?</code>,{' '}
              <code>{'write: a.txt <<< text'}</code>; other goals follow a{' '}
              <a href="/docs/guide/scenarios">scenario</a>
              {context.is_admin && (
                <>
                  {' '}
                  of <a href="/dashboard/controls/scenarios">Test controls</a>
                </>
              )}
              .
            </>
          )
        }
      />
      <ServerField value={server} onValue={setChosen}>
        <p class="notice">
          There is no server yet. <a href="/dashboard/servers">Create one</a> first.
        </p>
      </ServerField>
    </FormDialog>
  )
}
