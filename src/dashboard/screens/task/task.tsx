import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { runTaskAgain } from '../../components/begin.ts'
import { Button } from '../../components/button.tsx'
import { Id, ServerLink } from '../../components/copy.tsx'
import { isSubmit, SubmitKeys, submitKeysTitle } from '../../components/dialog.tsx'
import { GoalDialog } from '../../components/goals.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { Empty, Failure, Loading, ScreenPage } from '../../components/page.tsx'
import { State } from '../../components/state.tsx'
import { goalTitle } from '../../components/text.ts'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../router.ts'
import type { Task } from '../../store/store.ts'
import { ScenarioDialog } from '../controls/scenario-dialog.tsx'
import { useScenarios } from '../controls/scenario-set.tsx'
import { EntryView } from './entry-view.tsx'
import { followTranscript, TaskTranscript } from './transcript.ts'

/** A scenario that repeats a task, and the parts that it cannot repeat. */
type RecordedScenario = ResponseOf<'control.tasks.scenario'>

/** A task: the agent's work and its questions, as a conversation. */
export default function TaskScreen({ params }: ScreenProps) {
  const { store } = useDashboard()
  const { taskId = '' } = params
  const tasks = store.tasks.open()
  const task = tasks.get(taskId)
  const state = tasks.state.value
  if (task) return <Conversation task={task} />
  if (state instanceof Error) return <Failure error={state} retry={() => tasks.load()} />
  if (state !== 'ready') return <Loading />
  return (
    <ScreenPage title="No such task">
      <Empty title="This task is not there">
        <p>
          Its server was deleted, or it belongs to another account. <a href="/dashboard/tasks">All tasks</a>
        </p>
      </Empty>
    </ScreenPage>
  )
}

function Conversation({ task }: { task: Task }) {
  const dashboard = useDashboard()
  const { api, context } = dashboard
  const { id, serverId, goal, status, question, createdAt } = task
  const transcript = useMemo(() => new TaskTranscript(), [id])
  const [failure, setFailure] = useState<string | null>(null)
  const [isEditing, setEditing] = useState(false)
  const [recorded, setRecorded] = useState<RecordedScenario | null>(null)
  useEffect(() => followTranscript(api, task, transcript, setFailure), [id])
  const conversation = useRef<HTMLElement>(null)
  const isAsking = status === 'awaiting_input'
  useEffect(() => {
    if (!isAsking) return
    // The field for the reply is removed once it was sent: the keyboard continues at the agent's next step.
    return () => {
      if (document.activeElement === document.body) conversation.current?.focus({ preventScroll: true })
    }
  }, [isAsking])
  const entries = transcript.entries.value
  const usage = transcript.usage.value
  const isOpen = status === 'running' || status === 'awaiting_input'
  const params = { serverId, taskId: id }
  return (
    <ScreenPage
      title={goalTitle(goal)}
      above={
        <>
          <a href="/dashboard/tasks">Tasks</a> / <ServerLink id={serverId} />
        </>
      }
      beside={
        <>
          <State of={status} />
          <Id id={id} />
          <span class="began quiet">
            begun <Time at={createdAt} />
          </span>
        </>
      }
      actions={
        <>
          {isOpen && (
            <Button look="danger" icon="stop" onClick={() => api.call('tasks.cancel', { params })}>
              Cancel
            </Button>
          )}
          {status === 'running' && context.is_admin && (
            <Button onClick={() => api.call('control.tasks.release', { params: { taskId: id } })}>
              Release
            </Button>
          )}
          {!isOpen && context.is_admin && (
            <Button
              onClick={async () =>
                setRecorded(await api.call('control.tasks.scenario', { params: { taskId: id } }))
              }
            >
              Save as scenario
            </Button>
          )}
          {!isOpen && (
            <>
              <Button onClick={() => setEditing(true)}>Edit and run again</Button>
              <Button icon="restart" onClick={() => runTaskAgain(dashboard, task)}>
                Run again
              </Button>
            </>
          )}
        </>
      }
    >
      <section ref={conversation} class="conversation" aria-label="Conversation" tabIndex={-1}>
        <div class="said answer">
          <p class="speaker">Goal</p>
          <p class="words">{goal}</p>
        </div>
        {entries.map((entry) => (
          <EntryView key={entry.key} entry={entry} />
        ))}
        {failure !== null && <p class="notice failure">{failure}</p>}
        {isAsking && <Reply task={task} question={question ?? ''} />}
        {usage && (
          <p class="quiet">
            {usage.inputTokens} tokens read, {usage.outputTokens} written
            {usage.cost !== undefined && `, $${usage.cost.toFixed(4)}`}
          </p>
        )}
      </section>
      {isEditing && (
        <GoalDialog
          title="Run a task"
          example=""
          noun="tasks"
          serverId={serverId}
          goal={goal}
          onRun={(server, changed) => runTaskAgain(dashboard, task, changed, server)}
          onClose={() => setEditing(false)}
        />
      )}
      {recorded && <SaveScenario recorded={recorded} onClose={() => setRecorded(null)} />}
    </ScreenPage>
  )
}

/** Shows a task as a scenario, to be edited, tried and saved before the others. */
function SaveScenario({ recorded, onClose }: { recorded: RecordedScenario; onClose: () => void }) {
  const scenarios = useScenarios()
  return (
    <ScenarioDialog
      title="Save as scenario"
      scenario={recorded.scenario}
      index={null}
      scenarios={scenarios}
      notes={recorded.notes}
      onClose={onClose}
    />
  )
}

/** Asks for the response to an agent's question. */
function Reply({ task, question }: { task: Task; question: string }) {
  const { api, notices } = useDashboard()
  const [answer, setAnswer] = useState('')
  const { id: taskId, serverId } = task
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (!isTyping(document.activeElement)) field.current?.focus()
  }, [question])
  const send = async (): Promise<void> => {
    await api.call('tasks.answer', { params: { serverId, taskId }, body: { answer } })
    setAnswer('')
  }
  return (
    <form
      class="reply panel"
      onSubmit={(event) => {
        event.preventDefault()
        void notices.attempt(send)
      }}
    >
      <label class="field">
        <span>
          The agent waits for your response
          {question !== '' && <span class="visually-hidden">: {question}</span>}
        </span>
        <textarea
          ref={field}
          rows={3}
          value={answer}
          onInput={({ currentTarget }) => setAnswer(currentTarget.value)}
          onKeyDown={(event) => {
            if (isSubmit(event)) void notices.attempt(send)
          }}
        />
      </label>
      <Button type="submit" look="primary" title={submitKeysTitle()}>
        Send
        <SubmitKeys />
      </Button>
      <CommandLines
        berth={`berth tasks answer ${taskId} ${shellQuoted(answer)}`}
        method="POST"
        path={`/servers/${serverId}/tasks/${taskId}/input`}
        body={{ answer }}
      />
    </form>
  )
}

/** Reports whether the element with the focus takes text, or is in a dialog. */
const isTyping = (focused: Element | null): boolean =>
  focused?.matches('input, textarea, select, [contenteditable="true"], dialog *') ?? false
