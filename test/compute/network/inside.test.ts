import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { MAX_FORWARDED } from '../../../src/compute/local/network/forward.ts'
import { Registry } from '../../hosting/registries/registry.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { archiveOf, ready, type ShownProject } from '../../support/projects.ts'
import { probedTiers } from '../../support/tiers.ts'

const [, reason = null] = (await probedTiers()).find(([isolation]) => isolation === 'bubblewrap') ?? []
if (reason !== null) console.error(`SKIP what programs on a server reach: ${reason}`)

/** The ports of this file's projects. */
const FIRST = 6810
const LAST = 6819

/** Files of an app that says its name, its port and the host that it was called by. */
const app = (name: string, manifest: object = {}): Readonly<Record<string, string>> => ({
  'berth.json': JSON.stringify({ start: 'bun server.ts', ...manifest }),
  'server.ts': `
    const port = Number(process.env.LISTEN ?? process.env.PORT)
    const fetch = (request) => new Response(\`${name} at \${port}, host \${request.headers.get('host')}\\n\`)
    Bun.serve({ hostname: '127.0.0.1', port, fetch })`,
})

describe.skipIf(reason !== null)('a program on a server with its own network', () => {
  const registry = new Registry([{ name: 'tiny', says: 'installed' }])
  let berth: TestBerth
  /** The server whose programs ask, and one that has a project. */
  let server: string
  let other: string
  let shop: ShownProject
  let shopPort: string
  beforeAll(async () => {
    berth = await testBerth({
      flags: {
        isolation: 'bubblewrap',
        'project-ports': `${FIRST}-${LAST}`,
        'npm-registry': registry.url,
        plan: { projects: { small: 10 } },
      },
    })
    server = await berth.server()
    other = await berth.server()
    shop = await ready(berth, other, { visibility: 'public', source: await archiveOf(app('shop')) })
    shopPort = new URL(shop.url ?? '').port
  })
  afterAll(async () => {
    await berth?.[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  })

  const run = async (command: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const { stdout, stderr } = await berth.exec(server, command, { env })
    return (stdout + stderr).trim()
  }
  /** The response at a port of projects at which none answers. */
  const nothingAt = (port: number): string =>
    JSON.stringify({
      error: 'not_found',
      message: `No public project answers at port ${port}. "berth projects" lists the projects and their URLs.`,
    })
  const get = (url: string): Promise<string> => run(`curl -sS -m 5 '${url}'`)
  /** Runs a program until the command after it has ended. */
  const beside = (program: string, command: string): Promise<string> =>
    run(`${program} & program=$!; ${command}; kill $program; wait 2>/dev/null`)
  /** A program that answers every connection with a word, and a wait until it does. */
  const saying = (port: number, word: string): string =>
    `bun -e 'Bun.serve({ hostname: "127.0.0.1", port: ${port}, fetch: () => new Response("${word}") })'`
  const once = (url: string, word: string): string =>
    `for n in $(seq 200); do said=$(curl -s -m 5 ${url}); [ "$said" = "${word}" ] && break; sleep 0.05; done; echo "$said"`

  test('calls the API and MCP at BERTH_BASE_URL, with a credential that it was given', async () => {
    const env = { KEY: berth.info.api_key }
    const curl = 'curl -sS -m 5 -H "Authorization: Bearer $KEY"'
    expect(await run(`${curl} "$BERTH_BASE_URL/servers/${server}"`, env)).toContain(`"id":"${server}"`)
    expect(await run('curl -sS -m 5 "$BERTH_BASE_URL/servers"')).toContain('missing_or_invalid_api_key')
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-03-26',
        capabilities: {},
        clientInfo: { name: 'inside', version: '1' },
      },
    }
    const headers = `-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'`
    const said = await run(`${curl} ${headers} -d '${JSON.stringify(initialize)}' "$BERTH_BASE_URL/mcp"`, env)
    expect(said).toContain('"serverInfo":{"name":"berth"')
  })

  test('reaches another server’s project at the URL that berth prints, and by its name', async () => {
    expect(await get(shop.url ?? '')).toBe(`shop at 3000, host 127.0.0.1:${shopPort}`)
    expect(await get(`http://localhost:${shopPort}/`)).toBe(`shop at 3000, host localhost:${shopPort}`)
    expect(await get(`http://[::1]:${shopPort}/`)).toBe(`shop at 3000, host [::1]:${shopPort}`)
    const main = `${shop.slug}.localhost:${new URL(berth.info.base_url).port}`
    expect(await get(`http://${main}/`)).toBe(`shop at 3000, host ${main}`)
  })

  test('reaches no project that is private, and no program of the machine in the range of projects', async () => {
    const source = await archiveOf(app('hidden'))
    const hidden = await ready(berth, other, { visibility: 'public', source })
    const url = hidden.url ?? ''
    expect(await get(url)).toStartWith('hidden at')
    await berth.call('PATCH', `/projects/${hidden.id}`, { visibility: 'private' })
    expect(await get(url)).toBe(nothingAt(Number(new URL(url).port)))
    await using _machine = Bun.serve({
      hostname: '127.0.0.1',
      port: LAST,
      fetch: () => new Response('machine'),
    })
    expect(await get(`http://127.0.0.1:${LAST}/`)).toBe(nothingAt(LAST))
    await berth.call('DELETE', `/projects/${hidden.id}`)
  })

  test('receives a 404 by HTTP if no project answers at a port, and a reset by any other protocol', async () => {
    const url = `http://127.0.0.1:${LAST}/`
    expect(await run(`curl -sS -m 5 -o /dev/null -w '%{http_code}' ${url}`)).toBe('404')
    expect(await run(`head -c 300000 /dev/zero | curl -sS -m 5 --data-binary @- ${url}`)).toBe(
      nothingAt(LAST),
    )
    expect(await run(`curl -sS -m 5 -H 'accept: text/html' ${url}`)).toContain(
      '<p>No public project answers at',
    )
    expect(await run(`curl -sS -m 5 https://127.0.0.1:${LAST}/`)).toStartWith('curl: ')
  })

  test('has the port of a project for itself if it listens there', async () => {
    const port = Number(shopPort)
    const mine = once(`http://127.0.0.1:${port}/`, 'mine')
    expect(await beside(saying(port, 'mine'), mine)).toBe('mine')
    expect(await get(shop.url ?? '')).toStartWith('shop at 3000')
  })

  test('has a bounded number of connections to projects, which berth serves to others meanwhile', async () => {
    const script = `
      let [open, reset] = [0, 0]
      await Promise.all(Array.from({ length: ${MAX_FORWARDED + 50} }, () => new Promise((done) => {
        const over = () => { reset += 1; done() }
        Bun.connect({ hostname: '127.0.0.1', port: ${shopPort}, socket: {
          open: (socket) => { open += 1; socket.write('GET / HTTP/1.1\\r\\nHost: x'); setTimeout(done, 2000) },
          data() {}, close: over, error() {} } }).catch(over)
      })))
      console.log(open - reset); process.exit()`
    await berth.call('PUT', `/servers/${server}/files`, { path: 'many.js', content: script })
    const holding = run('bun many.js')
    expect(await (await fetch(shop.url ?? '')).text()).toStartWith('shop')
    const held = Number(await holding)
    expect(held).toBeGreaterThan(0)
    expect(held).toBeLessThanOrEqual(MAX_FORWARDED)
    expect(await get(shop.url ?? '')).toStartWith('shop at 3000')
  })

  test('listens on a port that another server and a program of the machine have too', async () => {
    await using machine = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('machine') })
    const { port = 0 } = machine
    const url = `http://127.0.0.1:${port}/`
    const listening = async (id: string): Promise<void> => {
      const { stdout } = await berth.exec(id, `${saying(port, id)} >/dev/null 2>&1 & ${once(url, id)}`)
      expect(stdout.trim()).toBe(id)
    }
    await listening(server)
    await listening(other)
    const ask = async (id: string): Promise<string> => (await berth.exec(id, `curl -s ${url}`)).stdout
    expect(await Promise.all([ask(server), ask(other)])).toEqual([server, other])
    expect(await (await fetch(url)).text()).toBe('machine')
  })

  test('runs as an app on port 80, and on a port of the range of projects', async () => {
    for (const port of [80, LAST - 1]) {
      const source = await archiveOf(app('fixed', { port }))
      const project = await ready(berth, server, {
        visibility: 'public',
        source,
        env: { LISTEN: String(port) },
      })
      expect(await (await fetch(project.url ?? '')).text()).toStartWith(`fixed at ${port}`)
      expect(await get(`http://127.0.0.1:${port}/`)).toStartWith(`fixed at ${port}`)
      await berth.call('DELETE', `/projects/${project.id}`)
    }
  })

  test('installs packages by berth’s mirror, which reaches a registry that servers do not', async () => {
    expect(await get(`${registry.url}/tiny`)).toStartWith('curl: ')
    const files = {
      ...app('unused'),
      'server.ts': `import tiny from 'tiny'
        Bun.serve({ hostname: '127.0.0.1', port: Number(process.env.PORT), fetch: () => new Response(tiny) })`,
      'package.json': JSON.stringify({ name: 'app', dependencies: { tiny: '^1.0.0' } }),
    }
    const project = await ready(berth, server, { visibility: 'public', source: await archiveOf(files) })
    expect(await get(project.url ?? '')).toBe('installed')
  })
})
