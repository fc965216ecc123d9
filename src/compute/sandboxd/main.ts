import { Agent } from './agent.ts'
import { FrameChannel } from './channel.ts'
import { loadLibc } from './libc.ts'
import { AGENT_FD, MAX_TO_AGENT } from './protocol.ts'

/**
 * The hidden command `berth __agent`: the process inside a sandbox that starts commands for berth.
 * It serves the socket that it inherits as descriptor 3 and ends, with all that it started, when the
 * socket closes: berth may have been killed. It imports nothing but Bun and its own few files, since
 * every running server pays for it in memory and in time to start.
 */
export async function runAgent(): Promise<void> {
  const libc = loadLibc()
  libc.leaveKeyring()
  // Ends with its socket, in order, rather than by a terminal's signals, which are meant for berth.
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(name, () => {})
  const leave = async (): Promise<void> => {
    await agent.shutdown()
    process.exit(0)
  }
  const channel = new FrameChannel({
    fd: AGENT_FD,
    maxPayload: MAX_TO_AGENT,
    onFrame: (kind, id, payload) => agent.receive(kind, id, payload),
    onClosed: () => void leave(),
    onBroken: (error) => {
      console.error(error instanceof Error ? error.message : error)
      void leave()
    },
  })
  const agent = new Agent({ libc, channel, leave })
  await channel.open()
}
