import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AcceptAtPort, AnsweringPorts } from '../../src/compute/compute.ts'
import { acceptAtPorts, acceptFor } from '../../src/compute/remote/accept.ts'
import type { RemoteSandbox } from '../../src/compute/remote/sandbox.ts'
import { codeOf } from '../../src/runtime/error-info.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { Bench, run } from './bench.ts'

/** Requests a page of a loopback port; returns the code of the failure if there is one. */
const failureAt = (port: number): Promise<unknown> =>
  fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' }).then(() => null, codeOf)

const listensAt = async (port: number): Promise<void> =>
  await until(async () => (await failureAt(port)) !== 'ECONNREFUSED', 'sandboxd listens')

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
      projects.set([first, taken.port])
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

  test('resets a connection to what berth does not offer now, and is free after the end of the server', async () => {
    const port = freePort()
    acceptFor(sandbox, port, { port: freePort() }).catch(() => {})
    await listensAt(port)
    expect(await failureAt(port)).toBe('ECONNRESET')
    await sandbox.stop()
    expect(await failureAt(port)).toBe('ECONNREFUSED')
  })
})
