import { connect, createServer, type Socket } from 'node:net'

/** A way to a berth on which every request carries a credential. */
export interface HeaderProxy extends AsyncDisposable {
  /** Its own address. */
  readonly url: string
}

/**
 * Passes bytes between a client that cannot send a credential and a berth, and adds the header `Authorization` to the
 * head of each request. Everything else stays as it was sent, Host and Origin among it.
 */
export async function headerProxy(target: string, key: string): Promise<HeaderProxy> {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const berth = connect(Number(port), hostname)
    const heads = new Heads(`Authorization: Bearer ${key}\r\n`)
    for (const socket of [client, berth]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        client.destroy()
        berth.destroy()
      })
    }
    client.on('data', (chunk) => berth.write(heads.pass(chunk)))
    client.on('end', () => berth.end())
    berth.on('data', (chunk) => client.write(chunk))
    berth.on('end', () => client.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Finds the heads of the requests on one connection, and puts a line behind the first of each. */
class Heads {
  #head = Buffer.alloc(0)
  /** Bytes of the body under way; null for one in chunks, which ends the looking. */
  #body: number | null = 0

  constructor(private readonly line: string) {}

  pass(chunk: Buffer): Buffer {
    const out: Buffer[] = []
    let rest = chunk
    while (rest.length > 0) {
      if (this.#body === null) {
        out.push(rest)
        break
      }
      if (this.#body > 0) {
        out.push(rest.subarray(0, this.#body))
        const taken = Math.min(this.#body, rest.length)
        this.#body -= taken
        rest = rest.subarray(taken)
        continue
      }
      this.#head = Buffer.concat([this.#head, rest])
      const end = this.#head.indexOf('\r\n\r\n')
      if (end === -1) break
      const text = this.#head.subarray(0, end + 4).toString('latin1')
      rest = this.#head.subarray(end + 4)
      this.#head = Buffer.alloc(0)
      const first = text.indexOf('\r\n') + 2
      out.push(Buffer.from(text.slice(0, first) + this.line + text.slice(first), 'latin1'))
      this.#body = /^transfer-encoding:/im.test(text)
        ? null
        : Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? 0)
    }
    return Buffer.concat(out)
  }
}
