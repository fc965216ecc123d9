import { type ForwardTarget, MAX_FORWARDED } from '../local/network/forward.ts'
import type { SandboxdClient } from '../sandboxd/client.ts'
import { SocketJoin } from '../sandboxd/socket-join.ts'

/** Calls that wait for connections at a time, so that several made at once are taken without a round trip between. */
const WAITING = 4

/**
 * Passes connections from inside a server to one port of its loopback on to something that berth offers, until the sandbox
 * ends. It is sandboxd that listens there; it opens no connection to this machine.
 *
 * @throws CallError if a program of the server has the port, ComputeError when the sandbox has ended
 */
export async function acceptFor(
  client: Pick<SandboxdClient, 'call'>,
  port: number,
  target: ForwardTarget,
): Promise<never> {
  const open = new Set<Promise<void>>()
  const next = async (): Promise<never> => {
    for (;;) {
      const call = client.call('accept', { port })
      await call.result
      const passing = pass(call, target).finally(() => open.delete(passing))
      open.add(passing)
      if (open.size >= MAX_FORWARDED) await Promise.race(open)
    }
  }
  return await Promise.race(Array.from({ length: WAITING }, next))
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
