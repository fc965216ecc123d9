import type { Connection } from './connection.ts'
import { framed } from './name-server.ts'
import { ReceivedBytes } from './received-bytes.ts'

/** Queries of one connection that are answered at a time. */
const MOST_QUERIES = 32

/** Bytes of queries, or of answers that are not read, before a connection is cut. */
const MOST_UNREAD = 2 ** 18

/**
 * Answers DNS queries over TCP (RFC 7766). Cuts the connection of a program that does not read the answers.
 *
 * @param answer returns the answer to a query, or null if it is lost
 */
export function serveDns(
  connection: Connection,
  answer: (query: Uint8Array) => Promise<Uint8Array | null>,
): void {
  const { tunnel } = connection
  const received = new ReceivedBytes()
  let answering = 0
  const answerNext = (): void => {
    while (answering < MOST_QUERIES && !tunnel.closed) {
      const { bytes } = received
      if (bytes.length < 2 || bytes.length < 2 + bytes.readUInt16BE(0)) return
      answering += 1
      void answer(received.take(2 + bytes.readUInt16BE(0)).subarray(2)).then((found) => {
        answering -= 1
        if (found === null || tunnel.unread > MOST_UNREAD) tunnel.cut()
        else if (!tunnel.closed) tunnel.respond(framed(found))
        answerNext()
      })
    }
  }
  connection.reader = (bytes) => {
    if (bytes === null) return tunnel.end()
    received.append(bytes)
    if (received.bytes.length > MOST_UNREAD) tunnel.cut()
    else answerNext()
  }
}
