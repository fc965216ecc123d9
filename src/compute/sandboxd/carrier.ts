import { messageOf } from '../../runtime/error-info.ts'
import { loadLibc } from '../../system/calls.ts'
import { loadPeerOf } from '../../system/linux/peer.ts'
import { readArguments, SANDBOXD_COMMAND } from '../processes.ts'

/** Milliseconds in which sandboxd has to listen, and between two looks: the engine may start both at once. */
const LISTEN_MS = 10_000
const LOOK_MS = 10

/**
 * Runs the hidden command `berth __sandboxd-connect PATH`, which an engine starts in a server: joins standard input and
 * output to the socket of sandboxd, and ends when either does. Understands nothing of the bytes. Ends with 1, and a line on
 * standard error, if nothing listens there, or another program than sandboxd.
 */
export async function runCarrier([path = '']: readonly string[]): Promise<void> {
  try {
    await carry(path)
    process.exit(0)
  } catch (error) {
    console.error(messageOf(error))
    process.exit(1)
  }
}

async function carry(path: string): Promise<void> {
  loadLibc().forbidTracing()
  const output = Bun.file(1).writer()
  const closed = Promise.withResolvers<void>()
  let drained = Promise.withResolvers<void>()
  let written: Promise<unknown> = Promise.resolve()
  const socket = await connect(path, {
    data(from, chunk) {
      from.pause()
      written = written.then(async () => {
        await output.write(chunk)
        await output.flush()
        from.resume()
      })
      written.catch(closed.resolve)
    },
    drain: () => drained.resolve(),
    close: () => closed.resolve(),
    error: () => closed.resolve(),
  })
  const input = async (): Promise<void> => {
    for await (const chunk of Bun.file(0).stream()) {
      for (let at = 0; at < chunk.length; ) {
        drained = Promise.withResolvers<void>()
        const sent = socket.write(chunk, at, chunk.length - at)
        if (sent < 0) return
        at += sent
        if (at < chunk.length) await drained.promise
      }
    }
  }
  await Promise.race([closed.promise.then(() => written), input()]).catch(() => {
    // Standard output is closed, or standard input broken: the engine's connection is gone.
  })
}

async function connect(unix: string, handlers: Bun.SocketHandler<undefined>): Promise<Bun.Socket> {
  for (const givesUpAt = performance.now() + LISTEN_MS; ; ) {
    try {
      const socket = await Bun.connect<undefined>({ unix, socket: handlers })
      // A command can put another socket in this place, but it cannot be process 1.
      const isFirst = readArguments(1).includes(SANDBOXD_COMMAND)
      if (!isFirst || loadPeerOf()(socket.fd) === 1) return socket
      socket.terminate()
      throw new Error(`Another program than sandboxd listens on ${unix}.`)
    } catch (error) {
      if (performance.now() > givesUpAt)
        throw new Error(`sandboxd does not listen on ${unix}: ${messageOf(error)}`)
      await Bun.sleep(LOOK_MS)
    }
  }
}
