import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { acceptFor } from '../../src/compute/remote/accept.ts'
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

  test('resets a connection to what berth does not offer now, and is free after the end of the server', async () => {
    const port = freePort()
    acceptFor(sandbox, port, { port: freePort() }).catch(() => {})
    await listensAt(port)
    expect(await failureAt(port)).toBe('ECONNRESET')
    await sandbox.stop()
    expect(await failureAt(port)).toBe('ECONNREFUSED')
  })
})
