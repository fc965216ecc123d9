import { readFileSync } from 'node:fs'
import type { FrameTransport, TransportHandlers } from '../../../src/compute/sandboxd/transport.ts'
import { fieldsOf } from '../../../src/runtime/is-object.ts'
import { VERSION } from '../../../src/runtime/version.ts'
import { RESPONSES_FILE, type Recorded } from './recorded.ts'
import { StandIn } from './stand-in.ts'

/** Bytes of the header of each piece of a container's output: its stream, three zeros, the length. */
const PIECE_HEADER_BYTES = 8

const END_OF_HEAD = '\r\n\r\n'

/** A container as the simulated engine keeps it. */
interface Container {
  readonly id: string
  readonly name: string
  readonly storage: string
  readonly labels: Readonly<Record<string, string>>
  carrier: Carrier | null
}

/** A request of which all has come. */
interface Request {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: Record<string, unknown>
}

/** What is known of a connection. It takes one request, as those of the driver do. */
interface Connection {
  received: Buffer
  /** What is not sent yet. */
  waiting: Buffer
  isLast: boolean
  carrier: Carrier | null
}

/** An attached connection, as the container's end of it. */
class Carrier implements FrameTransport {
  handlers: TransportHandlers | null = null
  readonly #send: (bytes: Uint8Array) => void
  readonly #end: () => void

  constructor(send: (bytes: Uint8Array) => void, end: () => void) {
    this.#send = send
    this.#end = end
  }

  async open(handlers: TransportHandlers): Promise<void> {
    this.handlers = handlers
  }

  write(bytes: Uint8Array): number {
    const piece = Buffer.alloc(PIECE_HEADER_BYTES + bytes.length)
    piece.writeUInt8(1, 0)
    piece.writeUInt32BE(bytes.length, 4)
    piece.set(bytes, PIECE_HEADER_BYTES)
    this.#send(piece)
    return bytes.length
  }

  terminate(): void {
    this.#end()
  }
}

/**
 * Speaks the Docker Engine API on a Unix socket, as far as the driver uses it, with thousands of containers whose process 1
 * is a `StandIn`. Its responses are those of a Docker engine, which `record-docker.ts` has recorded; the words in braces get
 * the values of the container or volume. It shows what one berth does with many servers, not what they cost an engine.
 */
export class SimulatedEngine implements Disposable {
  /** Requests so far, by method and path with `{}` for a name or an id. */
  readonly requests = new Map<string, number>()
  /** Containers that run or were made, by id. */
  readonly containers = new Map<string, Container>()
  /** Labels of volumes, by name. */
  readonly volumes = new Map<string, Readonly<Record<string, string>>>()
  /** Most requests that were under way at once, without those that stay open. */
  mostAtOnce = 0
  /** Milliseconds that the removal of a container takes. */
  removalMs = 0
  /** What arrives while it is stopped; null while it runs. */
  #held: (() => void)[] | null = null
  readonly #recorded = JSON.parse(readFileSync(RESPONSES_FILE, 'utf8')) as Record<string, Recorded>
  readonly #listener: Bun.UnixSocketListener<Connection>
  readonly #followers = new Set<Bun.Socket<Connection>>()
  #atOnce = 0
  #last = 0

  /** @param socket absolute path of the socket */
  constructor(socket: string) {
    this.#listener = Bun.listen<Connection>({
      unix: socket,
      socket: {
        open(opened) {
          opened.data = { received: Buffer.alloc(0), waiting: Buffer.alloc(0), isLast: false, carrier: null }
        },
        data: (from, chunk) => {
          if (this.#held === null) this.#receive(from, chunk)
          else this.#held.push(() => this.#receive(from, chunk))
        },
        drain: flush,
        close: (closed) => {
          this.#followers.delete(closed)
          closed.data.carrier?.handlers?.closed()
        },
      },
    })
  }

  /** How many requests there were in all. */
  get count(): number {
    return [...this.requests.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Makes a volume and its caches, and a container on it, as an earlier berth has left them. */
  leave(storage: string, labels: Readonly<Record<string, string>>, runs: boolean): void {
    for (const name of [storage, `${storage}-caches`]) this.volumes.set(name, labels)
    if (runs) this.#make(`${storage}-left`, storage, labels)
  }

  /** Accepts connections and does nothing, as if it was stopped (SIGSTOP), until the returned function is called. */
  stop(): () => void {
    this.#held ??= []
    return () => {
      const held = this.#held ?? []
      this.#held = null
      for (const receive of held) receive()
    }
  }

  /** Ends a container as the kernel does for lack of memory. */
  killForMemory(id: string): void {
    const container = this.containers.get(id)
    if (container === undefined) return
    this.#report(container, 'oom', '')
    this.#end(container, '137')
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true)
  }

  #receive(from: Bun.Socket<Connection>, chunk: Buffer): void {
    const { data } = from
    if (data.carrier !== null) {
      data.carrier.handlers?.data(Buffer.from(chunk))
      return
    }
    data.received = Buffer.concat([data.received, chunk])
    const end = data.received.indexOf(END_OF_HEAD)
    if (end === -1) return
    const head = data.received.toString('latin1', 0, end)
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    const body = data.received.subarray(end + END_OF_HEAD.length)
    if (body.length < length) return
    const [method = '', target = ''] = head.split(' ')
    const { pathname, searchParams } = new URL(target, 'http://engine')
    void this.#serve(from, {
      method,
      path: decodeURIComponent(pathname.replace(/^\/v[\d.]+/, '')),
      query: searchParams,
      body: length === 0 ? {} : fieldsOf(JSON.parse(body.toString())),
    })
  }

  async #serve(to: Bun.Socket<Connection>, request: Request): Promise<void> {
    const { method, path } = request
    const kind = `${method} ${path.replace(/^(\/(?:containers|volumes|images)\/)(?!create|json$)[^/]+/, '$1{}')}`
    this.requests.set(kind, (this.requests.get(kind) ?? 0) + 1)
    this.#atOnce += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce)
    try {
      await this.#route(to, kind, request)
    } finally {
      this.#atOnce -= 1
    }
  }

  async #route(to: Bun.Socket<Connection>, kind: string, { path, query, body }: Request): Promise<void> {
    const [, , name = ''] = path.split('/')
    const container = this.containers.get(name)
    const send = (key: string, words: Words = {}): void => this.#send(to, key, [words])
    switch (kind) {
      case 'GET /_ping':
      case 'GET /info':
      case 'GET /version':
        return send(`${kind} 200`)
      case 'GET /images/{}/json':
        return send('GET /images/berth-server%3A{version}/json 200')
      case 'GET /events':
        this.#followers.add(to)
        return this.#write(
          to,
          headOf(200, this.#recorded['GET /events 200']?.headers, 'Transfer-Encoding: chunked'),
        )
      case 'POST /volumes/create': {
        this.volumes.set(String(body.Name), body.Labels as Record<string, string>)
        return send('POST /volumes/create 201', { storage: String(body.Name) })
      }
      case 'GET /volumes/{}':
        return send(`GET /volumes/{storage} ${this.volumes.has(name) ? 200 : 404}`, { storage: name })
      case 'DELETE /volumes/{}':
        return this.volumes.delete(name)
          ? send('DELETE /volumes/{storage} 204')
          : send('GET /volumes/{storage} 404', { storage: name })
      case 'GET /volumes': {
        const rows = [...this.volumes].filter(([, labels]) => isSelected(query, labels))
        return this.#sendList(
          to,
          'GET /volumes 200',
          rows.map(([storage, labels]) => wordsOf({ storage, labels })),
        )
      }
      case 'GET /containers/json': {
        const rows = [...this.containers.values()].filter(({ labels }) => isSelected(query, labels))
        return this.#sendList(to, 'GET /containers/json 200', rows.map(wordsOf))
      }
      case 'POST /containers/create': {
        const { Labels, HostConfig } = body
        const [volume] = fieldsOf(HostConfig).Mounts as { Source: string }[]
        const labels = Labels as Record<string, string>
        const made = this.#make(query.get('name') ?? '', volume?.Source ?? '', labels)
        return send('POST /containers/create 201', wordsOf(made))
      }
      case 'POST /containers/{}/attach': {
        if (container === undefined) return send('DELETE /containers/{id} 404', { id: name })
        container.carrier = new Carrier(
          (bytes) => this.#write(to, bytes),
          () => to.end(),
        )
        to.data.carrier = container.carrier
        const { headers } = this.#recorded['POST /containers/{id}/attach 101'] ?? {}
        await new StandIn(container.carrier, () => this.#end(container, '0')).open()
        return this.#write(to, headOf(101, headers, 'Connection: Upgrade', 'Upgrade: tcp'))
      }
      case 'POST /containers/{}/start':
        return send('POST /containers/{id}/start 204')
      case 'DELETE /containers/{}': {
        if (this.removalMs > 0) await Bun.sleep(this.removalMs)
        if (container === undefined) return send('DELETE /containers/{id} 404', { id: name })
        this.#end(container, '137')
        return send('POST /containers/{id}/start 204')
      }
      case 'GET /containers/{}/json':
        return send('DELETE /containers/{id} 404', { id: name })
      default:
        throw new Error(`the simulated engine has no response to ${kind}`)
    }
  }

  #make(name: string, storage: string, labels: Readonly<Record<string, string>>): Container {
    this.#last += 1
    const id = this.#last.toString(16).padStart(64, '0')
    const container: Container = { id, name, storage, labels, carrier: null }
    this.containers.set(id, container)
    return container
  }

  /** Removes a container that has ended, as the engine does by itself. */
  #end(container: Container, exitCode: string): void {
    if (!this.containers.delete(container.id)) return
    this.#report(container, 'die', exitCode)
    container.carrier?.terminate()
  }

  /** Sends an event to those that follow them. */
  #report(container: Container, action: string, exitCode: string): void {
    const [recorded] = this.#recorded['GET /events 200']?.body ?? []
    const event = fieldsOf(fill(JSON.stringify(recorded), wordsOf(container)))
    const actor = fieldsOf(event.Actor)
    const nanoseconds = Date.now() * 1e6
    const text = JSON.stringify({
      ...event,
      ...{ status: action, Action: action, time: Math.floor(nanoseconds / 1e9), timeNano: nanoseconds },
      Actor: { ...actor, Attributes: { ...fieldsOf(actor.Attributes), exitCode } },
    })
    const line = Buffer.from(`${text}\n`)
    const chunk = Buffer.concat([Buffer.from(`${line.length.toString(16)}\r\n`), line, Buffer.from('\r\n')])
    for (const follower of this.#followers) this.#write(follower, chunk)
  }

  /** Sends a response with one element filled in for each row. */
  #sendList(to: Bun.Socket<Connection>, key: string, rows: readonly Words[]): void {
    const [body] = this.#recorded[key]?.body ?? []
    const list = Array.isArray(body) ? body : (fieldsOf(body).Volumes as unknown[])
    const row = JSON.stringify(list[0])
    const filled = `[${rows.map((words) => filledText(row, words)).join(',')}]`
    this.#respond(to, key, Array.isArray(body) ? filled : `{"Volumes":${filled},"Warnings":null}`)
  }

  #send(to: Bun.Socket<Connection>, key: string, [words]: readonly [Words]): void {
    const lines = this.#recorded[key]?.body ?? []
    this.#respond(
      to,
      key,
      lines
        .map((line) => (typeof line === 'string' ? line : filledText(JSON.stringify(line), words)))
        .join('\n'),
    )
  }

  #respond(to: Bun.Socket<Connection>, key: string, text: string): void {
    const recorded = this.#recorded[key]
    if (recorded === undefined) throw new Error(`no response was recorded for ${key}`)
    const status = Number(key.slice(-3))
    const length = status === 204 ? [] : [`Content-Length: ${Buffer.byteLength(text)}`]
    to.data.isLast = true
    this.#write(to, Buffer.from(headOf(status, recorded.headers, 'Connection: close', ...length) + text))
  }

  #write(to: Bun.Socket<Connection>, bytes: Uint8Array | string): void {
    to.data.waiting = Buffer.concat([to.data.waiting, Buffer.from(bytes as string)])
    flush(to)
  }
}

/** Values of the words in braces. */
type Words = Readonly<Record<string, string | Readonly<Record<string, string>>>>

const wordsOf = (of: Partial<Container>): Words => ({
  ...(of.id === undefined ? {} : { id: of.id, name: of.name ?? '' }),
  storage: of.storage ?? '',
  owner: of.labels?.['berth.owner'] ?? '',
  server: of.labels?.['berth.server'] ?? '',
})

/** Replaces the words in braces of a JSON text. */
const filledText = (text: string, words: Words): string =>
  text.replaceAll(/\{(\w+)\}/g, (found, word: string) =>
    String(words[word] ?? { version: VERSION, engine: 'SIMULATED', machine: 'simulated' }[word] ?? found),
  )

const fill = (text: string, words: Words): unknown => JSON.parse(filledText(text, words))

/** Reports whether the filter of a list selects something with these labels. */
function isSelected(query: URLSearchParams, labels: Readonly<Record<string, string>>): boolean {
  const { label = [] } = JSON.parse(query.get('filters') ?? '{}') as { label?: string[] }
  return label.every((text) => {
    const [name = '', value] = text.split('=')
    return labels[name] === value
  })
}

function headOf(status: number, headers: Readonly<Record<string, string>> = {}, ...more: string[]): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return `${[`HTTP/1.1 ${status} ${status}`, ...lines, ...more].join('\r\n')}${END_OF_HEAD}`
}

/** Sends what waits, and ends the connection behind its only response. */
function flush(to: Bun.Socket<Connection>): void {
  const { data } = to
  if (data.waiting.length > 0) data.waiting = data.waiting.subarray(Math.max(0, to.write(data.waiting)))
  if (data.waiting.length === 0 && data.isLast) to.end()
}
