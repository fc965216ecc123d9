import { useEffect, useMemo, useState } from 'preact/hooks'
import { followUntilEnd } from '../api/client.ts'
import { runInBackground } from '../components/begin.ts'
import { Button } from '../components/button.tsx'
import { CopyButton, Id, ServerLink } from '../components/copy.tsx'
import { CommandLines } from '../components/http.tsx'
import { OutputView, outputText } from '../components/output-view.tsx'
import { Empty, Failure, Loading, ScreenPage } from '../components/page.tsx'
import { ExitState, State } from '../components/state.tsx'
import { goalTitle } from '../components/text.ts'
import { span, Time } from '../components/time.tsx'
import { useDashboard } from '../dashboard.ts'
import type { ScreenProps } from '../router.ts'
import { PrintedOutput } from '../store/printed-output.ts'
import type { Execution } from '../store/store.ts'

/** An execution: the live output of its command, and how it ended. */
export default function ExecutionScreen({ params }: ScreenProps) {
  const { store } = useDashboard()
  const { serverId = '', executionId = '' } = params
  const executions = store.executions(serverId).open()
  const execution = executions.get(executionId)
  const state = executions.state.value
  if (execution) return <Running execution={execution} />
  if (state instanceof Error) return <Failure error={state} retry={() => executions.load()} />
  if (state !== 'ready') return <Loading />
  return (
    <ScreenPage title="No such execution">
      <Empty title="This execution is not there">
        <p>
          It ended more than 10 minutes ago, was deleted, or went with its server.{' '}
          <a href={`/dashboard/servers/${serverId}/executions`}>All executions of the server</a>
        </p>
      </Empty>
    </ScreenPage>
  )
}

function Running({ execution }: { execution: Execution }) {
  const dashboard = useDashboard()
  const { api, router, store } = dashboard
  const { id, serverId, command, status, startedAt } = execution
  const { output, failure, isRead } = useOutput(execution)
  const list = `/dashboard/servers/${serverId}/executions`
  const params = { serverId, executionId: id }
  const hasOutput = output.shown.value.parts.length > 0
  return (
    <ScreenPage
      title={goalTitle(command)}
      isFull
      above={
        <>
          <a href="/dashboard/servers">Servers</a> / <ServerLink id={serverId} /> /{' '}
          <a href={list}>Executions</a>
        </>
      }
      beside={
        <>
          <span role="status">
            <ExecutionState of={execution} />
          </span>
          <Id id={id} />
          <span class="began quiet">
            {status !== 'running' && (
              <>
                <Took of={execution} />,{' '}
              </>
            )}
            begun <Time at={startedAt} />
          </span>
        </>
      }
      actions={
        <>
          {hasOutput && <CopyButton text={() => outputText(output)} label="Copy the output" />}
          {status === 'running' ? (
            <Button look="danger" icon="stop" onClick={() => api.call('executions.delete', { params })}>
              Cancel
            </Button>
          ) : (
            <>
              <Button
                look="danger"
                onClick={async () => {
                  await api.call('executions.delete', { params })
                  store.executions(serverId).remove(id)
                  router.go(list)
                }}
              >
                Delete
              </Button>
              <Button icon="restart" onClick={() => runInBackground(dashboard, serverId, command)}>
                Run again
              </Button>
            </>
          )}
        </>
      }
    >
      <div class="execution">
        {command !== goalTitle(command) && <pre class="command">{command}</pre>}
        {failure !== null && <p class="notice failure">{failure}</p>}
        {!hasOutput && (
          <p class="quiet">
            {status === 'running' || !isRead ? 'Nothing was printed yet.' : 'It printed nothing.'}
          </p>
        )}
        <OutputView label="Output" output={output} more="A terminal reads all that is kept." />
        <CommandLines
          berth={`berth executions output ${id}${status === 'running' ? ' -f' : ''}`}
          method="GET"
          path={`/servers/${serverId}/executions/${id}/output`}
        />
      </div>
    </ScreenPage>
  )
}

/** What is known of an execution's output. */
interface FollowedOutput {
  readonly output: PrintedOutput
  /** Why it cannot be read at present; null if it can. */
  readonly failure: string | null
  /** Whether all of it is read. */
  readonly isRead: boolean
}

/** Reads the output of an execution, and follows it until the execution ends. */
function useOutput({ id: executionId, serverId }: Execution): FollowedOutput {
  const { api } = useDashboard()
  const output = useMemo(() => new PrintedOutput(), [executionId])
  const [failure, setFailure] = useState<string | null>(null)
  const [isRead, setRead] = useState(false)
  useEffect(() => {
    setFailure(null)
    setRead(false)
    let after: string | undefined
    return followUntilEnd(async (signal) => {
      const given = { params: { serverId, executionId }, query: { after }, signal }
      for await (const { event, data, id } of api.stream('executions.output', given)) {
        if (event === 'error') throw new Error(data.message)
        setFailure(null)
        // Output that is not kept lies before the shown one.
        if (event === 'stdout' || event === 'stderr') output.print(event, data)
        if (id !== '') after = id
        if (event !== 'exit') continue
        output.flush()
        return setRead(true)
      }
      throw new Error('The connection was lost.')
    }, setFailure)
  }, [api, serverId, executionId, output])
  return { output, failure, isRead }
}

/** How an execution ended, or that it runs. */
export function ExecutionState({ of: { status, exitCode, timedOut } }: { of: Execution }) {
  if (status === 'running') return <State of="running" look="active" />
  if (status === 'ended' && !timedOut) return <State of="ended" look="resting" />
  return <ExitState exitCode={exitCode} timedOut={timedOut} />
}

/** How long an execution took, or has been running, by berth's clock. */
export function Took({ of: { startedAt, endedAt } }: { of: Execution }) {
  const { clock } = useDashboard()
  const end = endedAt === null ? clock.now.value : Date.parse(endedAt)
  return <>{span(Math.max(0, end - Date.parse(startedAt)))}</>
}
