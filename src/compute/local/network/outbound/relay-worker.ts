import { messageOf } from '../../../../runtime/error-info.ts'
import type { FromRelay, ToRelay } from './messages.ts'
import { loadOriginalDestination } from './original-destination.ts'
import { RelayCommons, RelayedServer } from './relayed-server.ts'

/** The part of the global scope that a Worker talks through. */
interface WorkerScope {
  onmessage: ((event: { data: ToRelay }) => void) | null
  postMessage(message: FromRelay): void
}

/**
 * Takes the messages of the main thread. The relay has a thread of its own, so traffic of servers does not slow the API.
 */
function runRelay(scope: WorkerScope): void {
  // Its thread may have begun while berth was starting, when little is compiled.
  Bun.unsafe.setJITPolicy(1)
  const commons = new RelayCommons(loadOriginalDestination())
  const servers = new Map<number, RelayedServer>()
  const act = async (message: ToRelay): Promise<void> => {
    const { kind, server: id } = message
    if (kind === 'open') {
      const { serverId, settings, socketsOfBerth, sockets } = message
      const opened = new RelayedServer(commons, serverId, settings, socketsOfBerth, (refused) =>
        scope.postMessage({ kind: 'refused', server: id, ...refused }),
      )
      servers.set(id, opened)
      for (const socket of sockets) await opened.open(socket)
    } else if (kind === 'settings') servers.get(id)?.apply(message.settings)
    else if (kind === 'fault') servers.get(id)?.disturb(message.fault)
    else if (kind === 'sync') servers.get(id)?.renewReports()
    else {
      servers.get(id)?.close()
      servers.delete(id)
    }
  }
  scope.onmessage = ({ data }) => {
    void act(data).then(
      () => scope.postMessage({ kind: 'done', server: data.server, error: null }),
      (error) => scope.postMessage({ kind: 'done', server: data.server, error: messageOf(error) }),
    )
  }
  // A failure in the connection of one server must not end the others'.
  process.on('uncaughtException', (error) => scope.postMessage({ kind: 'failed', error: messageOf(error) }))
  process.on('unhandledRejection', (error) => scope.postMessage({ kind: 'failed', error: messageOf(error) }))
}

// A Worker's global scope; TypeScript knows that of a page.
runRelay(globalThis as unknown as WorkerScope)
