import { useCallback, useState } from 'preact/hooks'
import { messageOf } from '../../../runtime/error-info.ts'
import { CrashNotice, Warnings, WorkerList } from '../../components/app-parts.tsx'
import { Button } from '../../components/button.tsx'
import { Address } from '../../components/copy.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { CommandLines } from '../../components/http.tsx'
import { LogView } from '../../components/log-view.tsx'
import { Empty, Loaded } from '../../components/page.tsx'
import { State } from '../../components/state.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Deployment, Server } from '../../store/store.ts'

/** What a server publishes: its address and its log; publishes it, again, or no longer. */
export function DeploymentTab({ server }: { server: Server }) {
  const { api, store } = useDashboard()
  const [isPublishing, setPublishing] = useState(false)
  const [failure, setFailure] = useState<string | null>(null)
  const { id } = server
  const params = { serverId: id }
  const publish = async (): Promise<void> => {
    setPublishing(true)
    setFailure(null)
    try {
      await api.call('deployments.create', { params })
      await store.deployment(id).load()
    } catch (error) {
      setFailure(messageOf(error))
    }
    setPublishing(false)
  }
  /** Says why it failed. @param hasLog whether the log is shown below, so that its end is not shown twice */
  const failed = (hasLog: boolean) =>
    failure !== null && (
      <div class="notice failure" role="alert">
        <pre>{hasLog ? failure.split('\n', 1) : failure}</pre>
      </div>
    )
  return (
    <Loaded of={store.deployment(id)}>
      {([deployment]) =>
        deployment ? (
          <div class="deployment">
            <Published
              server={server}
              deployment={deployment}
              publish={publish}
              isPublishing={isPublishing}
            />
            {failed(true)}
            <CrashNotice crash={deployment.crash} remedy="fix it, then publish it again" />
            {deployment.port_taken && (
              <p class="notice failure" role="alert">
                Another program has the port of this address, so it leads there. End that program, and what is
                published answers there within a second.
              </p>
            )}
            <Warnings warnings={deployment.warnings} />
            <WorkerList workers={deployment.workers} />
            <DeploymentLog serverId={id} />
          </div>
        ) : (
          <div class="deployment">
            {failed(false)}
            {isPublishing ? (
              <>
                <p class="deployment-head" role="status">
                  <State of="publishing" look="active" /> An app is installed, built and started first.
                </p>
                <DeploymentLog serverId={id} />
              </>
            ) : (
              <Empty title="Nothing is published">
                <p>
                  Publishes the workspace under a URL: the app if it has one, else the files of{' '}
                  <code>dist/</code>, <code>build/</code>, <code>public/</code> or of the directory with the{' '}
                  <code>index.html</code>.
                </p>
                <p>
                  <Button look="primary" icon="upload" onClick={publish}>
                    Publish the workspace
                  </Button>
                </p>
                <p class="quiet">
                  For several apps, another directory, or one that is private, create a{' '}
                  <a href={`/dashboard/servers/${id}/projects`}>project</a>.
                </p>
                <CommandLines berth={`berth deploy --server ${id}`} method="POST" path={path(id)} />
              </Empty>
            )}
          </div>
        )
      }
    </Loaded>
  )
}

const path = (serverId: string): string => `/servers/${serverId}/deployments`

/** Properties of the deployment. */
interface PublishedProps {
  server: Server
  deployment: Deployment
  publish: () => Promise<void>
  isPublishing: boolean
}

/** The address and the state of the deployment, with the actions on it. */
function Published({ server, deployment, publish, isPublishing }: PublishedProps) {
  const { api, store, notices } = useDashboard()
  const [isRemoving, setRemoving] = useState(false)
  const { url } = deployment
  return (
    <div class="deployment-head">
      <State
        of={isPublishing ? 'publishing' : stateOf(server, deployment)}
        look={isPublishing ? 'active' : undefined}
      />
      <Address url={url} />
      <span class="actions">
        <Button icon="upload" onClick={publish}>
          Publish again
        </Button>
        <Button look="danger" onClick={() => setRemoving(true)}>
          Unpublish
        </Button>
      </span>
      <CommandLines berth={`berth deploy --server ${server.id}`} method="POST" path={path(server.id)} />
      {isRemoving && (
        <Confirm
          title="Unpublish it?"
          action="Unpublish"
          onClose={() => setRemoving(false)}
          commands={
            <CommandLines
              berth={`berth deployments delete ${server.id}`}
              method="DELETE"
              path={path(server.id)}
            />
          }
          onConfirm={async () => {
            await api.call('deployments.delete', { params: { serverId: server.id } })
            store.deployment(server.id).remove(server.id)
            notices.done('Nothing is published any more. The files stay.')
          }}
        >
          <p>
            Nothing responds at <code>{url}</code> any more, and the log is gone. The files stay. The next
            publication gets another address.
          </p>
        </Confirm>
      )}
    </div>
  )
}

/** Returns the state of a deployment in a word. */
function stateOf({ status }: Server, { live, crash }: Deployment): string {
  if (crash) return 'crashed'
  if (live) return 'live'
  return status === 'sleeping' ? 'sleeping' : 'start'
}

function DeploymentLog({ serverId }: { serverId: string }) {
  const { api } = useDashboard()
  const open = useCallback(
    (tail: number, signal: AbortSignal) =>
      api.stream('deployments.logs', { params: { serverId }, query: { tail }, signal }),
    [api, serverId],
  )
  return <LogView label="Log of the deployment" open={open} />
}
