import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { MAX_FORWARDED } from '../../../src/compute/local/network/forward.ts'
import { run as berthCommand } from '../../cli/command.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { archiveOf, created, logged, settled } from '../../support/projects.ts'
import { probedTiers } from '../../support/tiers.ts'

const [, reason = null] = (await probedTiers()).find(([isolation]) => isolation === 'bubblewrap') ?? []
if (reason !== null) console.error(`SKIP what a server reaches: ${reason}`)

/** An address of this machine besides loopback, at which the test's own service is reached without leaving it. */
const own = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

describe.skipIf(reason !== null)('what a server with its own network reaches', () => {
  let berth: TestBerth
  let server: string
  const service = Bun.serve({ hostname: '0.0.0.0', port: 0, fetch: () => new Response('the machine') })
  const { port = 0 } = service
  beforeAll(async () => {
    berth = await testBerth({ flags: { isolation: 'bubblewrap', 'server-hosts': String(port) } })
    server = await berth.server()
  })
  afterAll(async () => {
    await berth?.[Symbol.asyncDispose]()
    await service.stop(true)
  })

  /** Gets a URL on the server, by the redirection or by the proxy. Returns the response, or `failed`. */
  const get = async (url: string): Promise<string> =>
    (await berth.exec(server, `curl -sSf -m 8 ${url} 2>/dev/null || echo failed`)).stdout.trim()
  const network = (body?: object) =>
    berth.control(body === undefined ? 'GET' : 'PATCH', `/servers/${server}/network`, body)

  test('is enforced: private addresses are refused at once, and the refusal names what would allow it', async () => {
    expect((await network()).body).toMatchObject({ enforced: true, outbound: 'public', server_hosts: [port] })
    expect(await get('http://10.255.255.254:81/')).toBe('failed')
    const { refused } = (await network()).body
    const [{ destination, remedy }] = refused
    expect(destination).toBe('10.255.255.254:81')
    expect(remedy).toContain(`berth servers network ${server} --add-host 10.255.255.254:81`)
    expect(berth.log()).toContain('10.255.255.254:81')
  })

  test('is seen where the refused command is looked at: its result, the terminal, an app’s log, a task', async () => {
    const destination = '10.255.255.254:82'
    const remedy = `berth servers network ${server} --add-host ${destination}`
    const curl = `curl -sS -m 8 http://${destination}/`
    const { exitCode, refused } = (await berth.call('POST', `/servers/${server}/exec`, { command: curl }))
      .body
    expect(exitCode).not.toBe(0)
    expect(refused).toEqual([
      { destination, reason: expect.any(String), remedy: expect.stringContaining(remedy) },
    ])
    expect(
      (await berth.call('POST', `/servers/${server}/exec`, { command: 'false' })).body,
    ).not.toHaveProperty('refused')

    const env = { BERTH_BASE_URL: berth.info.base_url, BERTH_API_KEY: berth.info.api_key }
    const { stderr } = await berthCommand(['exec', server, '--', curl], { env })
    expect(stderr).toContain(remedy)

    // In a loop it is one line.
    const install = `for n in 1 2 3; do ${curl}; sleep 0.15; done; exit 1`
    const source = await archiveOf({ 'berth.json': JSON.stringify({ install, start: 'true' }) })
    const project = await settled(berth, (await created(berth, server, { source })).id)
    expect(project.init_phase).toBe('failed')
    expect((await logged(berth, project.id)).split(remedy)).toHaveLength(2)

    const { task_id } = (await berth.call('POST', `/servers/${server}/tasks`, { goal: `run: ${curl}` })).body
    const wait = await berth.control('GET', `/wait?task=${task_id}&until=failed&timeout_ms=20000`)
    expect(JSON.stringify(wait.body)).toContain(remedy)
    await berth.call('DELETE', `/projects/${project.id}`)
  }, 120_000)

  test('a port of this machine that is handed in is at the same port of its loopback, and no other is', async () => {
    expect(await get(`http://127.0.0.1:${port}/`)).toBe('the machine')
    await using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('secret') })
    expect(await get(`http://127.0.0.1:${other.port}/`)).toBe('failed')
  })

  test('berth takes a bounded number of connections of one server, and answers others meanwhile', async () => {
    const script = `
      const { port } = new URL(process.argv[2])
      let [open, reset] = [0, 0]
      await Promise.all(Array.from({ length: ${MAX_FORWARDED + 100} }, () => new Promise((done) => {
        const over = () => { reset += 1; done() }
        Bun.connect({ hostname: '127.0.0.1', port, socket: {
          open: (socket) => { open += 1; socket.write('GET / HTTP/1.1\\r\\nHost: x'); setTimeout(done, 3000) },
          data() {}, close: over, error() {} } }).catch(over)
      })))
      console.log(open - reset); process.exit()`
    await berth.call('PUT', `/servers/${server}/files`, { path: 'many.js', content: script })
    const holding = berth.exec(server, `bun many.js ${berth.info.base_url}`)
    expect((await berth.control('GET', '/health')).status).toBe(200)
    const held = Number((await holding).stdout)
    expect(held).toBeGreaterThan(0)
    expect(held).toBeLessThanOrEqual(MAX_FORWARDED)
    // They are let go with the program that held them.
    expect(await get(`${berth.info.base_url}/_berth/health`)).toContain('"ok"')
  })

  test.skipIf(own === undefined)(
    'a change is in effect when its response comes, and a fault until it is lifted',
    async () => {
      const url = `http://${own}:${port}/`
      expect(await get(url)).toBe('failed')
      await network({ hosts: [`${own}:${port}`] })
      expect(await get(url)).toBe('the machine')

      const fault = await berth.control('POST', `/servers/${server}/fault`, {
        kind: 'network',
        offline: true,
      })
      expect(fault.body).toEqual({ server_id: server, kind: 'network', active: true, offline: true })
      expect(await get(url)).toBe('failed')
      expect((await berth.control('DELETE', `/servers/${server}/fault/network`)).body.lifted).toEqual([
        'network',
      ])
      expect(await get(url)).toBe('the machine')

      await network({ outbound: 'none' })
      expect(await get(url)).toBe('failed')
      // It holds for the next start too.
      await berth.call('POST', `/servers/${server}/actions`, { action: 'restart' })
      expect(await get(url)).toBe('failed')
      await network({ outbound: null, hosts: null })
    },
  )

  test('two servers listen on one port, and neither reaches the other', async () => {
    const other = await berth.server()
    const serve = (text: string): string =>
      `printf 'Bun.serve({ hostname: "127.0.0.1", port: 3000, fetch: () => new Response("${text}") })' > s.ts; bun s.ts >/dev/null 2>&1 & for n in $(seq 100); do curl -s http://127.0.0.1:3000/ && break; sleep 0.1; done`
    expect((await berth.exec(server, serve('one'))).stdout).toBe('one')
    expect(
      (await berth.exec(other, 'curl -s -m 3 http://127.0.0.1:3000/ || echo failed')).stdout.trim(),
    ).toBe('failed')
    expect((await berth.exec(other, serve('two'))).stdout).toBe('two')
  })
})

test.skipIf(reason !== null || own === undefined)(
  'what takes the names of unix sockets that berth could use gets nothing of a server, and keeps none from starting',
  async () => {
    await using service = Bun.serve({
      hostname: '0.0.0.0',
      port: 0,
      fetch: () => new Response('the machine'),
    })
    const flags = { isolation: 'bubblewrap', 'outbound-hosts': `${own}:${service.port}` }
    await using berth = await testBerth({ flags })
    // Any user of the machine may do this.
    const { pid, base_url } = berth.info
    let taken = 0
    const squatters = [service.port, Number(new URL(base_url).port)].map((port) =>
      Bun.listen({
        unix: `\0berth/${pid}/${port}`,
        socket: {
          open(socket) {
            taken += 1
            socket.terminate()
          },
          data() {},
        },
      }),
    )
    try {
      const server = await berth.server()
      const { stdout } = await berth.exec(server, `curl -sS -m 8 http://${own}:${service.port}/ 2>&1`)
      expect([stdout, taken]).toEqual(['the machine', 0])
    } finally {
      for (const squatter of squatters) squatter.stop(true)
    }
  },
)
