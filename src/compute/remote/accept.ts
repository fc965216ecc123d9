import { fieldsOf } from '../../runtime/is-object.ts'
import { type ForwardTarget, MAX_FORWARDED } from '../local/network/forward.ts'
import type { AcceptAtPort, AcceptedConnection, AnsweringPorts } from '../local/network/project-ports.ts'
import type { SandboxdClient } from '../sandboxd/client.ts'
import { SocketJoin } from '../sandboxd/socket-join.ts'
import { CalledConnection } from './called-connection.ts'

/** Calls that wait for connections at a time, so that several made at once are taken without a round trip between. */
const WAITING = 4

/** Milliseconds after which sandboxd is told the ports of projects again that it could not be told. */
const RETRY_MS = 1_000

/**
 * Passes connections from inside a server to one port of its loopback on to something that berth offers, or to a function
 * that takes them, until the sandbox ends. It is sandboxd that listens there; it opens no connection to this machine.
 *
 * @throws CallError if a program of the server has the port, ComputeError when the sandbox has ended
 */
export async function acceptFor(
  client: Pick<SandboxdClient, 'call'>,
  port: number,
  target: ForwardTarget | AcceptAtPort,
): Promise<never> {
  const open = new Set<Promise<void>>()
  const next = async (): Promise<never> => {
    for (;;) {
      const call = client.call('accept', { port })
      await call.result
      const served = typeof target === 'function' ? serve(call, port, target) : pass(call, target)
      const passing = served.finally(() => open.delete(passing))
      open.add(passing)
      if (open.size >= MAX_FORWARDED) await Promise.race(open)
    }
  }
  return await Promise.race(Array.from({ length: WAITING }, next))
}

/**
 * Passes connections from inside a server to ports of projects on, as `acceptFor` does, while programs of the server have none of
 * these ports themselves. The server costs no call before there is such a port.
 *
 * @param ended settles when the sandbox has ended
 * @throws ComputeError when the sandbox has ended
 */
export async function acceptAtPorts(
  client: Pick<SandboxdClient, 'call'>,
  ports: AnsweringPorts,
  accept: AcceptAtPort,
  ended: Promise<unknown>,
): Promise<never> {
  let open = 0
  const next = async (): Promise<never> => {
    for (;;) {
      const call = client.call('accept', {})
      const { port } = fieldsOf(await call.result)
      open += 1
      if (open > MAX_FORWARDED) call.drop()
      void serve(call, Number(port), accept).finally(() => {
        open -= 1
      })
    }
  }
  const first = Promise.withResolvers<void>()
  let retry: Timer | null = null
  const listen = (): void => {
    clearTimeout(retry ?? undefined)
    const now = ports.now()
    if (now.length > 0) first.resolve()
    try {
      client.call('listen', { ports: now }).stream.end()
    } catch {
      // The connection is interrupted.
      retry = setTimeout(listen, RETRY_MS)
      retry.unref()
    }
  }
  const stop = ports.onChange(listen)
  void ended.then(() => {
    stop()
    clearTimeout(retry ?? undefined)
  })
  if (ports.now().length > 0) listen()
  await first.promise
  return await Promise.race(Array.from({ length: WAITING }, next))
}

/** Serves a connection inside the server by a function that takes it. */
async function serve(
  call: ReturnType<SandboxdClient['call']>,
  port: number,
  accept: AcceptAtPort,
): Promise<void> {
  let taken: AcceptedConnection | null = null
  const connection = new CalledConnection(call, {
    data: (chunk) => taken?.data(chunk),
    ended: () => (taken?.ended === undefined ? connection.end() : taken.ended()),
    drain: () => taken?.drain(),
    closed: (failed) => taken?.closed(failed),
  })
  taken = accept(port, connection)
  if (taken === null) call.drop()
  await connection.run()
}

/** Joins a connection inside the server to one of berth's. */
async function pass(call: ReturnType<SandboxdClient['call']>, target: ForwardTarget): Promise<void> {
  const join = new SocketJoin(call.stream)
  try {
    const place = 'unix' in target ? target : { hostname: '127.0.0.1', port: target.port }
    const socket = await join.connect(place)
    await join.run(socket)
    call.stream.end()
  } catch {
    // Either end was reset, or what berth offers is not there now: the other end is reset too.
    call.drop()
  }
}
