import { readActivity } from '../local/ports.ts'
import { commandMarker, isStopped, killPresent, signal, stopAll } from '../processes.ts'
import type { LoopbackHost } from '../sandbox.ts'
import type { ServedCall } from './call-stream.ts'
import type { FileDirectories } from './file-services.ts'
import type { CallName, FileCallName } from './protocol.ts'
import { SocketJoin } from './socket-join.ts'

/** What services act on: the server's processes, as sandboxd sees them, and its files. */
export interface ServiceContext extends FileDirectories {
  /** First 24 hex digits of their markers. */
  readonly marker: string
  /** The process from which all descend. */
  readonly root: number
  /** Returns the pids of all that commands have started. */
  find(): number[]
}

type Service = (call: ServedCall, context: ServiceContext) => Promise<void>

/**
 * What sandboxd does for berth beside commands. It is JavaScript alone: sandboxd may have to reap every child that is
 * not a command, so a service cannot start a helper process.
 */
export const SERVICES: Readonly<Record<CallName, Service>> = {
  dial,

  /** Waits for a connection from inside the server to a port at which berth offers something. */
  async accept(call) {
    const { serveAccept } = await import('./accept-service.ts')
    await serveAccept(call)
  },

  /** Listens at the ports of projects for berth. */
  async listen(call) {
    const { serveListen } = await import('./accept-service.ts')
    serveListen(call)
  },

  /** Answers what the processes of the command `execution` do. */
  async activity({ input, respond }, { marker, root }) {
    respond(await readActivity(root, commandMarker(marker, Number(input.execution)), process.pid))
  },

  /** Answers whether any process that commands have started still runs. */
  async occupied({ respond }, { find }) {
    respond(find().length > 0)
  },

  /**
   * Stops every process until the call's stream ends. Those that were stopped before stay so, unless `all` is set.
   */
  async pause(call, { find }) {
    const stopped = stopAll(() => find().filter((pid) => call.input.all === true || !isStopped(pid)))
    call.respond({})
    try {
      await call.stream.read()
    } finally {
      for (const pid of call.input.all === true ? find() : stopped) signal(pid, 'SIGCONT')
    }
  },

  /** Ends every process that runs now; answers when they are gone. */
  async kill(call, { find }) {
    await killPresent(find)
    call.respond({})
  },

  /** Lists everything that commands have started. */
  async processes(call, context) {
    const { serveProcesses } = await import('./process-services.ts')
    await serveProcesses(call, context)
  },

  /** Sends a signal to one of these processes. */
  async signal(call, context) {
    const { serveSignal } = await import('./process-services.ts')
    await serveSignal(call, context)
  },

  /** Measures what all of these processes use. */
  async consumption({ respond }, { find, root }) {
    const { measureConsumption } = await import('../process-table.ts')
    respond(measureConsumption(find(), [root]))
  },

  list: files('list'),
  entries: files('entries'),
  stat: files('stat'),
  unchanged: files('unchanged'),
  read: files('read'),
  open: files('open'),
  write: files('write'),
  remove: files('remove'),
  moveIn: files('moveIn'),
  mergeIn: files('mergeIn'),
  manifest: files('manifest'),
  pack: files('pack'),
  unpack: files('unpack'),
  watch: files('watch'),
  usage: files('usage'),
}

/** Returns a service of the server's files, which is loaded when one is first called. */
function files(name: FileCallName): Service {
  return async (call, directories) => {
    const { serveFileCalls } = await import('./file-services.ts')
    await serveFileCalls(name, call, directories)
  }
}

/** Connects to a port inside the server; answers when the connection is open, and joins it to the call's streams. */
async function dial({ input, stream, respond, over }: ServedCall): Promise<void> {
  const join = new SocketJoin(stream)
  const host = input.host as LoopbackHost
  const socket = await join.connect({ hostname: host, port: Number(input.port) })
  over.addEventListener('abort', () => socket.terminate())
  respond({})
  await join.run(socket)
}
