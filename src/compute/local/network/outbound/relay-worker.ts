import { messageOf } from '../../../../runtime/error-info.ts'
import { NameResolver } from '../../../../runtime/name-resolver.ts'
import { processes } from '../../../../system/processes.ts'
import type { FromRelay, ToRelay } from './messages.ts'
import { loadOriginalDestination } from './original-destination.ts'
import { RelayedServer } from './relayed-server.ts'

/** Connections of all servers, if the limit of this process's descriptors cannot be read. */
const DEFAULT_CONNECTIONS = 1_000

/** Share of the process's descriptors that connections may take; each takes two. */
const DESCRIPTOR_SHARE = 0.5

/** Connections that one server may have; and a server leaves most of the room to the others. */
const SERVER_CONNECTIONS = 2_000
const SERVER_SHARE = 0.25

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
  const originalDestination = loadOriginalDestination()
  const most = mostConnections()
  let connections = 0
  const admit = (): (() => void) | null => {
    if (connections >= most) return null
    connections += 1
    return () => {
      connections -= 1
    }
  }
  const mostOfServer = Math.min(SERVER_CONNECTIONS, Math.ceil(most * SERVER_SHARE))
  const resolver = new NameResolver()
  const commons = { originalDestination, resolver, admit, mostConnections: mostOfServer }
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

/** Returns the number of connections that leaves descriptors for the rest of berth. */
function mostConnections(): number {
  const limit = processes.maxOpenFiles()
  return limit === null ? DEFAULT_CONNECTIONS : Math.floor((limit * DESCRIPTOR_SHARE) / 2)
}

// A Worker's global scope; TypeScript knows that of a page.
runRelay(globalThis as unknown as WorkerScope)
