/** Responds with 404 at a port of projects where none answers. */
import type { AcceptedConnection } from '../../compute/compute.ts'
import type { ClientSocket } from './client-connection.ts'
import { ByteStream } from './http1/byte-stream.ts'

/** Milliseconds after which a connection is reset, whatever it is doing. */
const PATIENCE_MS = 5_000

/** The beginning of a request in HTTP. Other protocols have no bytes like these first. */
const REQUEST = /^[A-Z]{1,20}(?: |$)/

/**
 * Takes a connection to a port of projects at which none answers: a request in HTTP gets a 404 that says so, all else is
 * reset. The response is the same whether a private project has the port or none.
 */
export function refuseSite(port: number, socket: ClientSocket): AcceptedConnection {
  const stream = new ByteStream()
  stream.opened(socket)
  const timer = setTimeout(() => stream.terminate(), PATIENCE_MS)
  timer.unref()
  void stream.closing.then(() => clearTimeout(timer))
  respond(port, stream, socket).catch(() => stream.terminate())
  return stream
}

async function respond(port: number, stream: ByteStream, socket: ClientSocket): Promise<void> {
  const [{ readHead, parseRequest, checkRequestBeginning }, { headOf }, { ownResponse, sendMessage }] =
    await Promise.all([import('./http1/head.ts'), import('./client-connection.ts'), import('./exchange.ts')])
  const head = await readHead(stream, (beginning) => {
    const [begin = ''] = beginning.toString('latin1', 0, 32).split('\r')
    if (!REQUEST.test(begin)) throw new Error('no request')
    checkRequestBeginning(beginning)
  })
  if (head === null) return
  const message = `No public project answers at port ${port}. "berth projects" lists the projects and their URLs.`
  const response = ownResponse({ status: 404, code: 'not_found', message }, parseRequest(head))
  await sendMessage(stream, headOf(response, 'Connection: close\r\n'), false, response)
  // A body is read and dropped: unread, it would destroy the response.
  stream.ignoreRest()
  socket.shutdown()
}
