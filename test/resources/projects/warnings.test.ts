import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, logged, ready, type ShownProject, settled, shown } from '../../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 20 } } } })
const serverId = await berth.server()

/** An app that responds as `reply.json` says, and notes who asks. */
const SERVER = `
const { appendFileSync, readFileSync } = require('fs')
require('http').createServer((request, response) => {
  if (request.url === '/exit') process.exit(1)
  const { status, type, body } = JSON.parse(readFileSync('reply.json', 'utf8'))
  appendFileSync('asked', request.headers['user-agent'] + ' ' + request.headers.accept + '\\n')
  response.writeHead(status, { 'content-type': type }).end(body)
}).listen(process.env.PORT)`

const reply = (status: number, body: string, type = 'text/html') => JSON.stringify({ status, type, body })

const FORBIDDEN = reply(403, '<h1>Forbidden</h1>')
const WARNING =
  'The app responds to GET / with status 403. Its log, or its rules for who may see pages, say why.'

const files = (replies: string) => ({
  'berth.json': '{"start": "bun server.js"}',
  'server.js': SERVER,
  'reply.json': replies,
})

const project = async (content: Record<string, string>): Promise<ShownProject> =>
  ready(berth, serverId, { visibility: 'public', source: await archiveOf(content) })

const write = (path: string, content: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path, content })

/** How often a visitor's page was asked for by berth. */
const visits = async ({ slug }: ShownProject): Promise<number> => {
  const { stdout } = await berth.exec(serverId, `grep -c 'berth-health text/html' projects/${slug}/asked`)
  return Number(stdout)
}

describe('the warnings of a project', () => {
  test('stand in the project and in its log as soon as it is ready, and are those of the last bring-up', async () => {
    const app = await project(files(FORBIDDEN))
    expect(app.warnings).toEqual([WARNING])
    expect(await logged(berth, app.id)).toContain(`Warning: ${WARNING}\n→ ready`)
    const { body } = await berth.call('GET', '/projects')
    expect(body.projects.find(({ id }: ShownProject) => id === app.id).warnings).toEqual([WARNING])
    await write(`projects/${app.slug}/reply.json`, reply(200, '<h1>fixed</h1>'))
    expect((await shown(berth, app.id)).warnings).toEqual([WARNING])
    await berth.call('POST', `/projects/${app.id}/restart`)
    expect((await settled(berth, app.id)).warnings).toEqual([])
  })

  test('are empty as a rule', async () => {
    for (const replies of [reply(200, '<h1>home</h1>'), reply(404, '{"error":"none"}', 'application/json')])
      expect(await project(files(replies))).toMatchObject({ init_phase: 'ready', warnings: [] })
  })

  test('are not looked for when the app starts again by itself or with its server', async () => {
    const app = await project(files(reply(200, '<h1>home</h1>')))
    expect(await visits(app)).toBe(1)
    await write(`projects/${app.slug}/reply.json`, FORBIDDEN)
    await fetch(`${app.url}exit`).catch(() => {})
    await until(
      async () => (await logged(berth, app.id)).match(/Answers on port/g)?.length === 2,
      'a restart',
    )
    const answers = async () => (await fetch(app.url ?? '')).status === 403
    await until(answers, 'it to respond again')
    await berth.call('POST', `/servers/${serverId}/stop`)
    await berth.call('POST', `/servers/${serverId}/start`)
    await until(answers, 'it to respond after the sleep of its server')
    expect(await visits(app)).toBe(1)
    expect((await shown(berth, app.id)).warnings).toEqual([])
  })
})

describe('files', () => {
  const SCRIPT = '<script type="module" src="ADDRESS/assets/main.js"></script>'
  const site = (address: string) => ({
    'index.html': SCRIPT.replace('ADDRESS', address),
    'about.html': '<h1>about</h1>',
    'assets/main.js': 'export {}',
  })

  test('of a project are served by names without endings and below their base path, without a warning', async () => {
    const { url, slug, warnings } = await project(site('/my-repo'))
    expect(warnings).toEqual([])
    const { port } = new URL(berth.info.base_url)
    for (const at of [url ?? '', `http://${slug}.localhost:${port}/`]) {
      expect(await (await fetch(`${at}about`)).text()).toContain('about')
      const home = await fetch(at)
      expect([new URL(home.url).pathname, home.status]).toEqual(['/my-repo/', 200])
      expect(await (await fetch(new URL('assets/main.js', home.url))).text()).toBe('export {}')
    }
  })

  test('that load what they are from another origin give a warning that names it', async () => {
    const { warnings } = await project(site('https://ada.example.com/my-repo'))
    expect(warnings).toEqual([expect.stringContaining('https://ada.example.com/my-repo/')])
  })

  test('whose scripts are nowhere give a warning that names them', async () => {
    const { warnings } = await project({
      ...site('/my-repo'),
      'index.html': '<script src="/none.js"></script>',
    })
    expect(warnings).toEqual([expect.stringContaining('/none.js (status 404)')])
  })
})

test('a publication has warnings, too: in its response, in the list and in its log', async () => {
  const server = await berth.server()
  for (const [path, content] of Object.entries(files(FORBIDDEN)))
    await berth.call('PUT', `/servers/${server}/files`, { path, content })
  const published = await berth.call('POST', `/servers/${server}/deployments`)
  expect([published.status, published.body.warnings]).toEqual([201, [WARNING]])
  const listed = async () => (await berth.call('GET', `/servers/${server}/deployments`)).body.deployments[0]
  expect((await listed()).warnings).toEqual([WARNING])
  const { body } = await berth.call('GET', `/servers/${server}/deployments/logs`)
  expect(body.logs.map(({ text }: { text: string }) => text)).toContain(`Warning: ${WARNING}`)
  await berth.call('PUT', `/servers/${server}/files`, { path: 'reply.json', content: reply(200, 'home') })
  expect((await berth.call('POST', `/servers/${server}/deployments`)).body.warnings).toEqual([])
  expect((await listed()).warnings).toEqual([])
})

test('an app that checks where a form comes from, by the headers of a proxy, takes one at both addresses', async () => {
  // As @sveltejs/adapter-node does with these variables.
  const code = `
const { PROTOCOL_HEADER, HOST_HEADER, PORT } = process.env
Bun.serve({ port: PORT, async fetch(request) {
  if (request.method !== 'POST') return new Response('form')
  const protocol = (PROTOCOL_HEADER && request.headers.get(PROTOCOL_HEADER)) || 'https'
  const host = (HOST_HEADER && request.headers.get(HOST_HEADER)) || request.headers.get('host')
  if (request.headers.get('origin') !== protocol + '://' + host)
    return new Response('Cross-site POST form submissions are forbidden', { status: 403 })
  return new Response((await request.formData()).get('name'))
} })`
  const env = { PROTOCOL_HEADER: 'x-forwarded-proto', HOST_HEADER: 'x-forwarded-host' }
  const source = await archiveOf({ 'berth.json': '{"start": "bun app.ts"}', 'app.ts': code })
  const { url, slug } = await ready(berth, serverId, { visibility: 'public', source, env })
  const { port } = new URL(berth.info.base_url)
  const body = () => new URLSearchParams({ name: 'Ada' })
  for (const at of [url ?? '', `http://${slug}.localhost:${port}/`]) {
    const origin = at.slice(0, -1)
    const taken = await fetch(at, { method: 'POST', body: body(), headers: { origin } })
    expect([taken.status, await taken.text()]).toEqual([200, 'Ada'])
    const forged = { origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' }
    expect((await fetch(at, { method: 'POST', body: body(), headers: forged })).status).toBe(403)
  }
})
