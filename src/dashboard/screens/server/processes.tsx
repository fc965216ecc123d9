import { useEffect, useState } from 'preact/hooks'
import type { ServerUsage } from '../../../resources/usage/model.ts'
import type { ResponseOf } from '../../../route-client/client.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import { Button } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Empty, Failure, Loading } from '../../components/page.tsx'
import { bytesText } from '../../components/text.ts'
import { Time } from '../../components/time.tsx'
import { useUsage } from '../../components/usage-meters.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'

type Process = ResponseOf<'processes.list'>['processes'][number]

/** What runs on a server. Processes are listed when it is shown or asked for; how many there are is always up to date. */
export function Processes({ server }: { server: Server }) {
  const { api } = useDashboard()
  const params = { serverId: server.id }
  const [shown, setShown] = useState<{ processes: readonly Process[]; usage: ServerUsage } | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const [ending, setEnding] = useState<Process | null>(null)
  const live = useUsage(server.id).get(server.id)
  const load = async (): Promise<void> => {
    try {
      const [{ processes }, { usage }] = await Promise.all([
        api.call('processes.list', { params }),
        api.call('usage.get', { params }),
      ])
      setShown({ processes, usage })
      setFailure(null)
    } catch (error) {
      setFailure(new Error(messageOf(error)))
    }
  }
  useEffect(() => void load(), [server.id, server.status])
  if (failure) return <Failure error={failure} retry={load} />
  if (!shown) return <Loading />
  const { processes, processes_limit: most } = live ?? shown.usage
  return (
    <div class="processes">
      <p class="actions">
        <Button icon="restart" onClick={load}>
          List again
        </Button>
        <span class="quiet">
          {processes} processes and threads of at most {most} run.
        </span>
      </p>
      {shown.processes.length === 0 ? (
        <Empty title={server.status === 'sleeping' ? 'The server sleeps' : 'Nothing runs'}>
          <p>Commands, terminals, apps and tasks show here while they run.</p>
        </Empty>
      ) : (
        <div class="scroll">
          <table class="plain">
            <thead>
              <tr>
                <th class="number">PID</th>
                <th>Command</th>
                <th class="owner">Of</th>
                <th class="number">CPU</th>
                <th class="number">Memory</th>
                <th>Ports</th>
                <th class="began">Began</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {shown.processes.map((process) => (
                <Row
                  key={process.pid}
                  serverId={server.id}
                  process={process}
                  onEnd={() => setEnding(process)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {ending && (
        <Confirm
          title={`End process ${ending.pid}?`}
          action="End it"
          onClose={() => setEnding(null)}
          onConfirm={async () => {
            const { ended } = await api.call('processes.delete', {
              params: { ...params, pid: String(ending.pid) },
            })
            // It may ignore the first signal, never the second.
            if (!ended)
              await api.call('processes.delete', {
                params: { ...params, pid: String(ending.pid) },
                query: { signal: 'KILL' },
              })
            await load()
          }}
        >
          <p>
            <code>{ending.command}</code>
          </p>
        </Confirm>
      )}
    </div>
  )
}

function Row({ serverId, process, onEnd }: { serverId: string; process: Process; onEnd: () => void }) {
  const { pid, command, belongs_to: owner, cpu_percent: cpu, memory_bytes: memory, ports } = process
  return (
    <tr>
      <td class="number">{pid}</td>
      <td>
        <code>{command}</code>
      </td>
      <td class="owner quiet">
        {owner?.kind === 'exec' && owner.id !== null ? (
          <a href={`/dashboard/servers/${serverId}/executions/${owner.id}`}>execution</a>
        ) : (
          owner?.kind
        )}
      </td>
      <td class="number">{cpu.toFixed(1)} %</td>
      <td class="number">{bytesText(memory)}</td>
      <td>{ports.join(', ')}</td>
      <td class="began quiet">
        <Time at={process.started_at} />
      </td>
      <td>
        <Button look="quiet" icon="stop" label={`End process ${pid}`} onClick={onEnd} />
      </td>
    </tr>
  )
}
