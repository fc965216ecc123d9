import type { AcceptedConnection } from '../../compute/compute.ts'
import { machineNow } from '../../runtime/clock.ts'
import { BufferedWriter, type Duplex } from './buffered-writer.ts'
import { findHeadEnd, HEAD_LIMIT } from './http1/head.ts'

/** Milliseconds after which a connection is reset, whatever it is doing. */
const PATIENCE_MS = 5_000

/** The beginning of a request in HTTP. Other protocols have no bytes like these first. */
const REQUEST = /^[A-Z]{1,20}(?: |$)/

/**
 * Takes a connection to a port of projects at which none answers: a request in HTTP gets a 404 that says so, all else is
 * reset. The response is the same whether a private project has the port or none.
 */
export function refuseSite(port: number, socket: Duplex): AcceptedConnection {
  const writer = new BufferedWriter(socket)
  const timer = setTimeout(() => socket.terminate(), PATIENCE_MS)
  timer.unref()
  let head: Buffer = Buffer.alloc(0)
  let responds = false
  const respond = async (request: string): Promise<void> => {
    const [{ ownBytes }, { HttpDate }] = await Promise.all([
      import('./own-response.ts'),
      import('./http1/http-date.ts'),
    ])
    const message = `No public project answers at port ${port}. "berth projects" lists the projects and their URLs.`
    const response = { status: 404, code: 'not_found', message } as const
    const bytes = ownBytes(response, request, false, new HttpDate(machineNow))
    if (writer.write(bytes, 0, bytes.length, false)) socket.shutdown()
  }
  return {
    receive(bytes) {
      // A body is read and dropped: unread, it would destroy the response.
      if (responds) return
      head = Buffer.concat([head, bytes])
      const end = findHeadEnd(head, 0)
      const [begin = ''] = head.toString('latin1', 0, 32).split('\r')
      if (!REQUEST.test(begin) || (end === -1 && head.length > HEAD_LIMIT)) socket.terminate()
      else if (end !== -1) {
        responds = true
        void respond(head.toString('latin1', 0, end))
      }
    },
    drain() {
      if (responds && writer.flush()) socket.shutdown()
    },
    closed: () => clearTimeout(timer),
  }
}
