import { formatBytes } from '../../components/bytes.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Empty } from '../../components/empty.tsx'
import { titleOf } from '../../components/goal.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Time } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'
import { ExecutionState, Took } from '../execution/execution-facts.tsx'

/** The executions of a server: commands that run on without whoever started them, the newest first. */
export function Executions({ server }: { server: Server }) {
  const { store } = useDashboard()
  const commands = `/dashboard/servers/${server.id}/commands`
  return (
    <Loaded of={store.executions(server.id)}>
      {(executions) =>
        executions.length === 0 ? (
          <Empty title="No executions on this server">
            <p>
              An execution is a command that runs on by itself: one that was started in the background, or
              that an assistant left after 45 s. It is listed for 10 minutes after its end.
            </p>
            <p>
              <a class="button plain" href={commands}>
                Type a command
              </a>
            </p>
            <CommandLines
              berth={`berth exec --detach ${server.id} -- ${quoted('npm test')}`}
              method="POST"
              path={`/servers/${server.id}/exec`}
              body={{ command: 'npm test', detach: true }}
            />
          </Empty>
        ) : (
          <div class="table executions">
            <div class="row head" aria-hidden="true">
              <span>Command</span>
              <span>State</span>
              <span>Printed</span>
              <span>Took</span>
              <span>Began</span>
            </div>
            <VirtualList items={executions} rowHeight={48} keyOf={({ id }) => id} label="Executions">
              {(execution) => (
                <div class="row">
                  <span class="cell">
                    <a class="row-link" href={`/dashboard/servers/${server.id}/executions/${execution.id}`}>
                      <bdi title={execution.command}>
                        <code>{titleOf(execution.command)}</code>
                      </bdi>
                    </a>
                  </span>
                  <span class="cell">
                    <ExecutionState of={execution} />
                  </span>
                  <span class="cell quiet">
                    {execution.status !== 'running' &&
                      formatBytes(execution.stdoutBytes + execution.stderrBytes)}
                  </span>
                  <span class="cell quiet">
                    <Took of={execution} />
                  </span>
                  <span class="cell quiet">
                    <Time at={execution.startedAt} />
                  </span>
                </div>
              )}
            </VirtualList>
          </div>
        )
      }
    </Loaded>
  )
}
