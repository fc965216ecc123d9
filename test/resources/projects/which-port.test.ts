import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, logged, type ShownProject, settled } from '../../support/projects.ts'

/** An app of one file, on a server of its own. `AUX` and `WEB` in its text are ports that no other app has. */
interface PortApp {
  code: string
  start?: string
  files?: Record<string, string>
  /** Only with the Node.js of this machine. */
  node?: true
}

/** Answers on PORT, or on another one, after some time. */
const web = (ms: number, port = 'process.env.PORT', type = 'text/html') =>
  `setTimeout(() => require('http').createServer((_, response) => response
    .writeHead(200, { 'content-type': '${type}' }).end('web')).listen(${port}), ${ms});`

/** What opens at once on a port beside it. */
const METRICS = `require('http').createServer((_, response) => response.end('metrics')).listen(AUX);`
const SILENT = `require('net').createServer(() => {}).listen(AUX);`
const SOCKETS = `require('http').createServer((_, response) => response.writeHead(426).end()).listen(AUX);`
const CHATTER = `setInterval(() => console.log('still here'), 300);`
const BUSY = `setInterval(() => { for (const end = Date.now() + 100; Date.now() < end; ); }, 200);`

const APPS: Record<string, PortApp> = {
  'PORT after 0.5 s': { code: METRICS + web(500) },
  'PORT after 3 s': { code: METRICS + web(3000) },
  'PORT after 12 s': { code: METRICS + web(12_000) },
  'PORT after 4 s, while it prints': { code: METRICS + CHATTER + web(4000) },
  'PORT after 4 s, while it works': { code: METRICS + BUSY + web(4000) },
  'an inspector': { code: web(4000), start: 'node --inspect=AUX server.js', node: true },
  'an inspector by NODE_OPTIONS': {
    code: web(4000),
    start: 'NODE_OPTIONS=--inspect=AUX node server.js',
    node: true,
  },
  'an inspector that the program opens': {
    code: `require('inspector').open(AUX);${web(4000)}`,
    start: 'node server.js',
    node: true,
  },
  'an inspector, and a port of its own': {
    code: web(3000, 'WEB'),
    start: 'node --inspect=AUX server.js',
    node: true,
  },
  'a port that says nothing': { code: SILENT + web(3000) },
  'a port that says nothing, and one of its own': { code: SILENT + web(0, 'WEB') },
  'a port of its own alone': { code: web(0, 'WEB', 'text/plain') },
  'a port of its own, while it prints': { code: CHATTER + web(0, 'WEB') },
  'a page beside metrics': { code: METRICS + web(800, 'WEB') },
  'a page beside a port for WebSockets': { code: SOCKETS + web(800, 'WEB') },
  'the port of berth.json': {
    code: METRICS + web(3000, 'WEB'),
    files: { 'berth.json': '{"port": WEB, "start": "bun server.js"}' },
  },
}

const HAS_NODE = Bun.which('node') !== null

describe('the port that is published is the app’s', () => {
  let berth: TestBerth
  const began = new Map<string, Promise<ShownProject>>()
  beforeAll(async () => {
    berth = await testBerth()
    for (const [name, app] of Object.entries(APPS)) if (HAS_NODE || !app.node) began.set(name, begin(app))
    await Promise.all(began.values())
  }, 120_000)
  afterAll(() => berth[Symbol.asyncDispose]())

  async function begin({ code, start = 'bun server.js', files = {} }: PortApp): Promise<ShownProject> {
    const ports = { AUX: freePort(), WEB: freePort() }
    const all = {
      'package.json': JSON.stringify({ scripts: { start } }),
      'server.js': code,
      ...files,
    }
    const source = await archiveOf(
      Object.fromEntries(
        Object.entries(all).map(([path, text]) => [
          path,
          text.replaceAll('AUX', String(ports.AUX)).replaceAll('WEB', String(ports.WEB)),
        ]),
      ),
    )
    const server = await berth.server()
    const { status, body } = await berth.call('POST', `/servers/${server}/projects`, {
      visibility: 'public',
      source,
    })
    expect(status).toBe(201)
    return settled(berth, body.id, 100_000)
  }

  const answer = async ({ url }: ShownProject): Promise<string> => (await fetch(String(url))).text()

  /** Milliseconds between two lines of a project's log. */
  async function between({ id }: ShownProject, first: string, second: string): Promise<number> {
    const { body } = await berth.call('GET', `/projects/${id}/logs?tail=500`)
    const at = (text: string): number =>
      Date.parse(body.logs.find((line: { text: string }) => line.text.startsWith(text)).at)
    return at(second) - at(first)
  }

  for (const [name, { node, code }] of Object.entries(APPS)) {
    test.skipIf(node === true && !HAS_NODE)(`with ${name}`, async () => {
      const project = await (began.get(name) as Promise<ShownProject>)
      expect(await logged(berth, project.id)).toContain('Answers on port')
      expect(project.init_phase).toBe('ready')
      // Only an app that does nothing more may be found elsewhere before it listens on PORT.
      if (name !== 'PORT after 3 s' && name !== 'PORT after 12 s') expect(await answer(project)).toBe('web')
      else await until(async () => (await answer(project)) === 'web', 'the app to answer at PORT')
      if (code.startsWith(SILENT)) {
        expect(await between(project, 'Starts:', 'Answers on port')).toBeLessThan(15_000)
      }
    })
  }

  test('with a port of its own it is up as soon as the app is quiet', async () => {
    const project = await (began.get('a port of its own alone') as Promise<ShownProject>)
    // 2 s of quiet after a start of less than 2 s; apps that start beside each other take longer.
    expect(await between(project, 'Starts:', 'Answers on port')).toBeLessThan(12_000)
  })

  test('also after a new version, whose other port the one before still has', async () => {
    const { id, url } = await (began.get('PORT after 0.5 s') as Promise<ShownProject>)
    expect((await berth.call('POST', `/projects/${id}/restart`)).status).toBe(202)
    await until(
      async () =>
        (await logged(berth, id)).includes('The version before holds a port that this one needs too'),
      'the version before to be ended',
    )
    expect((await settled(berth, id)).init_phase).toBe('ready')
    expect(await (await fetch(String(url))).text()).toBe('web')
  })
})
