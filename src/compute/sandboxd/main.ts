import { FrameChannel } from './channel.ts'
import { loadLibc } from './libc.ts'
import { MAX_TO_SANDBOXD, SANDBOXD_FD } from './protocol.ts'
import { Sandboxd } from './sandboxd.ts'

/**
 * The hidden command `berth __sandboxd`: the process inside a sandbox that starts commands for berth.
 * It serves the socket that it inherits as descriptor 3 and ends, with all that it started, when the
 * socket closes: berth may have been killed. It imports nothing but Bun and its own few files, since
 * every running server pays for it in memory and in time to start.
 */
export async function runSandboxd(): Promise<void> {
  const libc = loadLibc()
  libc.leaveKeyring()
  // Ends with its socket, in order, not by a terminal's signals, which are meant for berth.
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(name, () => {})
  const exit = async (): Promise<void> => {
    await sandboxd.shutdown()
    process.exit(0)
  }
  const channel = new FrameChannel({
    fd: SANDBOXD_FD,
    maxPayload: MAX_TO_SANDBOXD,
    onFrame: (kind, id, payload) => sandboxd.receive(kind, id, payload),
    onClosed: () => void exit(),
    onBroken: (error) => {
      console.error(error instanceof Error ? error.message : error)
      void exit()
    },
  })
  const sandboxd = new Sandboxd({ libc, channel, exit })
  await channel.open()
}
