/**
 * A pseudo-internet in the network namespace that this process was started in: web servers that say where they are and
 * who asked, an echo, and a name server. Prints a line when it serves.
 */
import {
  RCODE,
  RECORD,
  readQuestion,
  writeResponse,
} from '../../../src/compute/local/network/outbound/dns-message.ts'

/** The name server's address. */
export const NAME_SERVER = '93.184.216.53'

/** An address that drops what it is sent. */
export const SILENT = '2606:4700::dead'

/** Such addresses of one name, as many as a response over UDP has room for. */
export const SILENT_HOSTS = Array.from({ length: 12 }, (_, n) => `2606:4700::dead:${n + 1}`)

/** What names resolve to. */
export const NAMES: Readonly<Record<string, readonly string[]>> = {
  'example.test.example': ['93.184.216.34'],
  'other.test.example': ['93.184.216.35'],
  'inner.test.example': ['10.0.0.5'],
  'both.test.example': ['93.184.216.34', '2606:4700::34'],
  'silent.test.example': ['93.184.216.35', SILENT],
  'silence.test.example': SILENT_HOSTS,
  'mixed.test.example': ['10.0.0.5', '169.254.169.254', '93.184.216.34'],
}

/** Where the names below `rebind.test.example` lead from the second time on. */
const REBOUND: Readonly<Record<string, string>> = {
  // The machine's own addresses.
  own: '93.184.216.1',
  loopback: '127.0.0.1',
  metadata: '169.254.169.254',
}

/** Has nobody keep the addresses of a response. @param end where its records begin */
function withoutTtl(response: Uint8Array, end: number): Uint8Array {
  const bytes = Buffer.from(response)
  // A pointer to the name, type and class, then the TTL and the length of the address (RFC 1035, section 4.1.3).
  for (let at = end; at + 12 <= bytes.length; at += 12 + bytes.readUInt16BE(at + 10))
    bytes.writeUInt32BE(0, at + 6)
  return bytes
}

async function serveInternet(): Promise<void> {
  const web = (hostname: string, port: number) =>
    Bun.serve({
      hostname,
      port,
      maxRequestBodySize: 1e9,
      async fetch(request) {
        const { pathname } = new URL(request.url)
        if (pathname === '/big') return new Response(new Uint8Array(20_000_000))
        if (pathname === '/hash') {
          return new Response(Bun.SHA256.hash(await request.arrayBuffer(), 'hex'))
        }
        return new Response(`${hostname} ${request.method} ${request.headers.get('host')} ${request.url}\n`)
      },
    })
  for (const host of ['93.184.216.34', '93.184.216.35', '10.0.0.5', '169.254.169.254', '2606:4700::34']) {
    web(host, 80)
  }
  web('93.184.216.34', 8080)
  // Keeps each connection, whatever is asked, and says what it was asked, with line ends of its own.
  const keeping = (port: number, lineEnd: string): void => {
    Bun.listen({
      hostname: '93.184.216.34',
      port,
      socket: {
        data(socket, bytes) {
          const body = `${bytes}`
          const head = [
            'HTTP/1.1 200 OK',
            `Content-Length: ${body.length}`,
            'Connection:',
            ' keep-alive',
            '',
            '',
          ]
          socket.write(`${lineEnd}${head.join(lineEnd)}${body}`)
        },
      },
    })
  }
  keeping(91, '\r\n')
  keeping(92, '\n')
  // Says what it has received only after the client's end, over the connection's other half.
  Bun.listen<{ bytes: number }>({
    hostname: '93.184.216.34',
    port: 7,
    allowHalfOpen: true,
    socket: {
      open(socket) {
        socket.data = { bytes: 0 }
      },
      data(socket, bytes) {
        socket.data.bytes += bytes.length
      },
      end(socket) {
        socket.write(`${socket.data.bytes} bytes\n`)
        socket.end()
      },
    },
  })
  const asked = new Map<string, number>()
  await Bun.udpSocket({
    hostname: NAME_SERVER,
    port: 53,
    socket: {
      data(socket, query, port, address) {
        const question = readQuestion(query)
        if (question === null) return
        const { name, type } = question
        const times = (asked.get(`${name} ${type}`) ?? 0) + 1
        asked.set(`${name} ${type}`, times)
        // Rebinding: an inner address from the second time on.
        const [label = ''] = name.split('.', 1)
        const rebinding = name.endsWith('rebind.test.example')
          ? [times > 1 ? (REBOUND[label] ?? '10.0.0.5') : '93.184.216.34']
          : []
        const all = NAMES[name] ?? rebinding
        const fitting = all.filter((one) => one.includes(':') === (type === RECORD.AAAA))
        const code = all.length === 0 ? RCODE.NXDOMAIN : RCODE.NOERROR
        socket.send(withoutTtl(writeResponse(question, code, fitting), question.end), port, address)
      },
    },
  })
  console.log('ready')
}

if (import.meta.main) await serveInternet()
