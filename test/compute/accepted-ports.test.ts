import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { AcceptAtPort, AnsweringPorts } from '../../src/compute/compute.ts'
import { OutboundProxy } from '../../src/compute/local/network/outbound/proxy.ts'
import { RelayCommons } from '../../src/compute/local/network/outbound/relayed-server.ts'
import { acceptAtPorts, acceptFor } from '../../src/compute/remote/accept.ts'
import type { RemoteSandbox } from '../../src/compute/remote/sandbox.ts'
import { codeOf } from '../../src/runtime/error-info.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { Bench, run } from './bench.ts'

/** Requests a page of a loopback port; returns the code of the failure if there is one. */
const failureAt = (port: number): Promise<unknown> =>
  fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' }).then(() => null, codeOf)

const listensAt = async (port: number): Promise<void> =>
  await until(async () => (await failureAt(port)) !== 'ECONNREFUSED', 'sandboxd listens')

/** Sends the request of its second argument to a port, ends its side, and prints what comes. */
const ASK = `
const { connect } = require("node:net")
const socket = connect({ host: "127.0.0.1", port: Number(process.argv[1]), allowHalfOpen: true })
socket.end(process.argv[2] + "\\r\\n\\r\\n")
socket.on("error", () => process.exit()).pipe(process.stdout)`

/** Projects that answer each connection with their port and what they are told. */
class Projects implements AnsweringPorts {
  #ports: number[] = []
  readonly #listeners = new Set<() => void>()

  readonly accept: AcceptAtPort = (port, socket) => ({
    data(chunk) {
      socket.write(Buffer.from(`${port}: ${chunk}`))
      socket.end()
    },
    drain() {},
    closed() {},
  })

  now(): number[] {
    return this.#ports
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  set(ports: number[]): void {
    this.#ports = ports
    for (const listener of this.#listeners) listener()
  }
}

/**
 * Ports at which berth offers something inside a server elsewhere. The server here shares this machine's loopback, so the
 * port inside is another one than that of what is offered.
 */
describe('a port of berth inside a server that is reached by calls', () => {
  let bench: Bench
  let sandbox: RemoteSandbox
  const body = Buffer.alloc(5_000_000, 'berth')
  const offered = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) =>
      new Response(new URL(request.url).pathname === '/echo' ? await request.bytes() : body),
  })

  /** Has sandboxd listen at a free port. */
  async function offer(): Promise<string> {
    const port = freePort()
    acceptFor(sandbox, port, { port: offered.port ?? 0 }).catch(() => {})
    await listensAt(port)
    return `http://127.0.0.1:${port}/`
  }

  beforeAll(async () => {
    bench = new Bench('piped')
    sandbox = (await bench.start()) as RemoteSandbox
  })
  afterAll(async () => {
    await bench[Symbol.asyncDispose]()
    await offered.stop(true)
  })

  test('passes connections on, many at once, with large bodies each way', async () => {
    const url = await offer()
    const asked = Array.from({ length: 30 }, async (_, index) => {
      const echo = { method: 'POST', body }
      const response = await (index % 2 === 0 ? fetch(url) : fetch(`${url}echo`, echo))
      return response.bytes()
    })
    for (const bytes of await Promise.all(asked)) expect(Buffer.compare(bytes, body)).toBe(0)
  })

  test('is reached by programs of the server, several at once', async () => {
    const url = await offer()
    const counted = Array.from({ length: 8 }, () => run(sandbox, `curl -s ${url} | wc -c`))
    for (const { stdout } of await Promise.all(counted)) expect(stdout.trim()).toBe(String(body.length))
  })

  test('is refused if a program has the port', async () => {
    const taken = Bun.listen({ hostname: '127.0.0.1', port: 0, exclusive: true, socket: { data() {} } })
    try {
      await expect(acceptFor(sandbox, taken.port, { port: offered.port ?? 0 })).rejects.toMatchObject({
        code: 'EADDRINUSE',
      })
    } finally {
      taken.stop(true)
    }
  })

  test('that is a project’s is open while the project answers, and stays a program’s that has it', async () => {
    const [first, second] = [freePort(), freePort()]
    const taken = Bun.listen({ hostname: '127.0.0.1', port: 0, exclusive: true, socket: { data() {} } })
    const ended = Promise.withResolvers<void>()
    const projects = new Projects()
    acceptAtPorts(sandbox, projects, projects.accept, ended.promise).catch(() => {})
    try {
      expect(await failureAt(first)).toBe('ECONNREFUSED')
      projects.set([taken.port, first])
      await listensAt(first)
      const said = Array.from({ length: 20 }, () =>
        run(sandbox, `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${first}; echo hi >&3; cat <&3'`),
      )
      for (const { stdout } of await Promise.all(said)) expect(stdout).toBe(`${first}: hi\n`)

      projects.set([second])
      await listensAt(second)
      expect(await failureAt(first)).toBe('ECONNREFUSED')
      ended.resolve()
      await ended.promise
      projects.set([first])
      expect(await failureAt(first)).toBe('ECONNREFUSED')
    } finally {
      taken.stop(true)
    }
  })

  /** An address of this machine that is not loopback, which the rules let a server reach if it is listed. */
  const outside = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

  describe.skipIf(outside === undefined)('that leads outside', () => {
    /** Connections that the world has. */
    const open = new Set<Bun.Socket<undefined>>()
    /** What the world does when a connection opens, its client sends no more, or takes more. */
    let world: Pick<Bun.SocketHandler<undefined>, 'open' | 'end' | 'drain'> = {}
    const listener = Bun.listen({
      ...{ hostname: outside ?? '127.0.0.1', port: 0, allowHalfOpen: true },
      socket: {
        open(socket) {
          open.add(socket)
          void world.open?.(socket)
        },
        data() {},
        drain: (socket) => world.drain?.(socket),
        end: (socket) => world.end?.(socket),
        close: (socket) => void open.delete(socket),
      },
    })
    const target = `${outside}:${listener.port}`
    let proxy: OutboundProxy
    let port: number

    beforeAll(async () => {
      proxy = new OutboundProxy({
        commons: new RelayCommons(),
        serverId: 'srv_a',
        settings: { mode: 'public', hosts: [target] },
        socketsOfBerth: {},
        enforced: async () => true,
        logger: createLogger('error', () => {}, Date.now),
      })
      port = freePort()
      acceptFor(sandbox, port, (_, socket) => proxy.accept(socket)).catch(() => {})
      await listensAt(port)
    })
    afterAll(() => {
      proxy.close()
      listener.stop(true)
    })

    /** Has a program send a request to the proxy, end its side, and print the response. */
    const ask = (request: string) => run(sandbox, `bun -e '${ASK}' ${port} '${request}'`)

    test('gives a program that has ended its side the whole response', async () => {
      const short = body.subarray(0, 50_000)
      world = { end: (socket) => void socket.end(short) }
      const { stdout } = await ask(`GET http://${target}/ HTTP/1.0`)
      expect(stdout.length).toBe(short.length)
      await until(() => open.size === 0, 'the connection to end')
    })

    test('ends the connection outside when the program is gone', async () => {
      const write = (socket: Bun.Socket<undefined>): void => {
        while (socket.write(body) === body.length);
      }
      world = {
        open(socket) {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          write(socket)
        },
        drain: write,
      }
      const download = `timeout 0.3 curl -s -o /dev/null -x http://127.0.0.1:${port} http://${target}/`
      await run(sandbox, `${Array(6).fill(download).join(' & ')}; wait`)
      await until(() => open.size === 0, 'the connection to end')
    })

    test('ends the connection outside when a program that had ended its side breaks it off', async () => {
      const program = `const s = await Bun.connect({ hostname: "127.0.0.1", port: ${port}, allowHalfOpen: true,
        socket: { data() {}, open(s) { s.write("CONNECT ${target} HTTP/1.1\\r\\n\\r\\n"); s.shutdown() } } })
        while (!(await Bun.file("go").exists())) await Bun.sleep(20)
        s.terminate(); process.exit()`
      const ended = Promise.withResolvers<void>()
      world = { end: () => ended.resolve() }
      const broken = run(sandbox, `bun -e '${program}'`)
      await ended.promise
      expect(open.size).toBe(1)
      const descriptors = (): number => readdirSync('/proc/self/fd').length
      const before = descriptors()
      await run(sandbox, 'touch go')
      // Its end was said before, so the world does not see that it is closed now.
      await until(() => descriptors() < before, 'the connection to be closed')
      for (const socket of open) socket.terminate()
      await broken
    })

    test('refuses what the rules do not allow, and cuts what they no longer do', async () => {
      // The line of status has it too, since that is all that most programs show of a tunnel.
      expect((await ask('CONNECT 10.0.0.5:80 HTTP/1.1')).stdout).toMatch(
        /^HTTP\/1\.1 403 berth refuses this .* --add-host 10\.0\.0\.5:80.*\r\n/,
      )
      expect(proxy.refused.map(({ destination }) => destination)).toEqual(['10.0.0.5:80'])
      const asked = Promise.withResolvers<void>()
      world = { end: () => asked.resolve() }
      const waiting = ask(`CONNECT ${target} HTTP/1.1`)
      await asked.promise
      await proxy.apply({ mode: 'none', hosts: [] })
      await waiting
      await until(() => open.size === 0, 'the connection to end')
      expect((await ask(`CONNECT ${target} HTTP/1.1`)).stdout).toContain('no way out')
    })
  })

  test('resets a connection to what berth does not offer now, and is free after the end of the server', async () => {
    const port = freePort()
    acceptFor(sandbox, port, { port: freePort() }).catch(() => {})
    await listensAt(port)
    expect(await failureAt(port)).toBe('ECONNRESET')
    await sandbox.stop()
    expect(await failureAt(port)).toBe('ECONNREFUSED')
  })
})
