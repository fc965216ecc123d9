import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import type { Destination } from './destination.ts'

/** Bytes of an answer that are read and kept. */
const ANSWER_LIMIT = 1_024

/** Nothing was sent yet: another address of the same name may do. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN'])

/** What came back of a request. */
export interface Answer {
  status: number
  /** Its first KiB. */
  text: string
}

/** One request to be sent. */
export interface Outgoing {
  destination: Destination
  headers: Record<string, string>
  body: string
  /** Certificates of authorities that are trusted in place of the system's. */
  ca?: string
  /** Ends it. */
  signal: AbortSignal
}

/**
 * POSTs to one of the checked addresses of a destination, on a connection of its own: the name is not
 * looked up again, so that a name server cannot lead it elsewhere. Server name, certificate and Host
 * header are those of the name. Redirects are not followed, proxies of the environment not asked.
 *
 * @throws Error where no answer comes, with the signal's reason where that ended it
 */
export async function post(outgoing: Outgoing): Promise<Answer> {
  let failure: unknown
  for (const address of outgoing.destination.addresses) {
    try {
      return await postTo(address, outgoing)
    } catch (error) {
      failure = error
      if (!NOT_CONNECTED.has((error as { code?: string }).code ?? '')) break
    }
  }
  throw failure
}

function postTo(address: string, { destination, headers, body, ca, signal }: Outgoing): Promise<Answer> {
  const { url, name } = destination
  const secure = url.protocol === 'https:'
  const request = secure ? httpsRequest : httpRequest
  const family = address.includes(':') ? 6 : 4
  const isName = name !== address
  const bytes = Buffer.from(body)
  const options: RequestOptions = {
    method: 'POST',
    host: name,
    port: url.port || (secure ? 443 : 80),
    path: `${url.pathname}${url.search}`,
    headers: {
      host: `${name.includes(':') ? `[${name}]` : name}${url.port && `:${url.port}`}`,
      ...headers,
      'content-length': bytes.length,
    },
    // An agent would keep connections and hand them out by name.
    agent: false,
    lookup: (_name, { all }, give) => (all ? give(null, [{ address, family }]) : give(null, address, family)),
    // An address is no server name (RFC 6066, 3).
    ...(secure && isName ? { servername: name } : {}),
    ...(ca ? { ca } : {}),
  }
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const sent: ClientRequest = request(options, (answer) => read(answer).then(resolve, reject).finally(end))
    const abort = () => {
      reject(signal.reason)
      sent.destroy()
    }
    const end = () => {
      signal.removeEventListener('abort', abort)
      sent.destroy()
    }
    signal.addEventListener('abort', abort)
    sent.on('error', (error) => {
      end()
      reject(error)
    })
    sent.end(bytes)
  })
}

/** Reads an answer to its end, or to its first KiB. */
function read(answer: IncomingMessage): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    const done = () => {
      const bytes = Buffer.concat(chunks).subarray(0, ANSWER_LIMIT)
      resolve({ status: answer.statusCode ?? 0, text: bytes.toString('utf8') })
    }
    answer.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size < ANSWER_LIMIT) return
      done()
      answer.destroy()
    })
    answer.on('end', done)
    answer.on('error', reject)
    answer.on('close', () => reject(new Error('the connection was closed before the answer ended')))
  })
}
