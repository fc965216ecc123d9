/**
 * Golden traces: what the life of apps shows from outside, from request to event to log. They keep a change of how berth
 * works inside from changing what a user sees. A trace changes only in a commit that says what users see of it.
 */
import { expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { begun, HELD, letGo, manifest, over, reaches } from '../support/builds.ts'
import { until } from '../support/processes.ts'
import { archiveOf, logged, settled, shown } from '../support/projects.ts'
import { Trace } from './trace.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 20 } } } })

const app = (response: string, before = '') =>
  `${before}Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response(${JSON.stringify(response)}) })\n`

/** Creates a project and waits until nothing goes on by itself. */
async function project(trace: Trace, serverId: string, files: Record<string, string>, rest: object = {}) {
  const source = await archiveOf(files)
  const { id } = await trace.call('POST', `/servers/${serverId}/projects`, {
    name: 'One',
    source,
    visibility: 'public',
    ...rest,
  })
  await rested(trace, id)
  return id as string
}

async function rested(trace: Trace, id: string): Promise<void> {
  await settled(berth, id)
  await trace.call('GET', `/projects/${id}`)
}

/** Pushes files as a client does: with their hashes, and those that are missing. */
async function push(trace: Trace, id: string, files: Record<string, string>): Promise<void> {
  const listed = Object.entries(files).map(([path, content]) => ({
    path,
    sha256: new Bun.CryptoHasher('sha256').update(content).digest('hex'),
  }))
  const { missing } = await trace.call('POST', `/projects/${id}/push`, { files: listed })
  const form = new FormData()
  form.set('files', JSON.stringify(listed))
  const sent = Object.fromEntries(missing.map((path: string) => [path, files[path] ?? '']))
  form.set('archive', new Blob([Buffer.from((await archiveOf(sent)).data, 'base64')]))
  await trace.form(`/projects/${id}/push`, form)
}

async function ended(trace: Trace, id: string): Promise<void> {
  await trace.log(`/projects/${id}/logs?tail=500`)
  await trace.events()
}

test('a site: created, pushed, hidden, restarted, removed', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const id = await project(trace, server, { 'index.html': 'first', 'style.css': 'a {}' })
  const { url } = await shown(berth, id)
  await trace.page(`${url}`)
  await push(trace, id, { 'index.html': 'second', 'more/page.html': 'page' })
  await rested(trace, id)
  await trace.page(`${url}`)
  await trace.page(`${url}more/page`)
  await trace.page(`${url}style.css`)
  await trace.call('PATCH', `/projects/${id}`, { visibility: 'private' })
  await trace.gone(`${url}`)
  await trace.call('POST', `/projects/${id}/restart`)
  await rested(trace, id)
  await ended(trace, id)
  await trace.call('POST', `/projects/${id}/cleanup`)
  await trace.call('DELETE', `/projects/${id}`)
  await trace.call('GET', `/projects/${id}`)
  await trace.events()
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

test('an app: installed, built, up, replaced by one that does not start, and by one that does', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const manifest = JSON.stringify({
    install: 'echo installing',
    build: 'echo building >&2',
    start: 'bun app.ts',
  })
  const id = await project(trace, server, {
    'berth.json': manifest,
    'app.ts': app('one', 'console.log("begins");'),
  })
  const { url } = await shown(berth, id)
  await trace.page(`${url}`)
  await push(trace, id, { 'app.ts': 'console.error("no luck"); process.exit(3)', 'berth.json': manifest })
  await rested(trace, id)
  await trace.page(`${url}`)
  await push(trace, id, { 'app.ts': app('two'), 'berth.json': manifest })
  await rested(trace, id)
  await trace.page(`${url}`)
  await trace.page(`${url}`, { method: 'HEAD' })
  await ended(trace, id)
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

for (const step of ['install', 'build', 'start', 'health'] as const) {
  test(`an app that fails: ${step}`, async () => {
    const server = await berth.server()
    const trace = new Trace(berth, server)
    const fails = {
      install: { install: 'echo bad lock >&2; exit 4', start: 'bun app.ts' },
      build: { install: 'true', build: 'echo no types; exit 2', start: 'bun app.ts' },
      start: { start: 'echo gone; exit 1' },
      health: { start: 'echo waits; exec sleep 60', timeout: 1 },
    }[step]
    const files = { 'berth.json': JSON.stringify(fails), 'app.ts': app('up') }
    const id = await project(trace, server, files)
    const { url } = await shown(berth, id)
    if (url !== null) await trace.page(url)
    await trace.call('POST', `/projects/${id}/init`, { proceed: true })
    await rested(trace, id)
    await ended(trace, id)
    expect(trace.toString()).toMatchSnapshot()
  }, 120_000)
}

test('an app that nothing says how to start', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const id = await project(trace, server, { 'notes.txt': 'nothing', 'lib.py': 'x = 1' })
  await ended(trace, id)
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

test('an app that waits for its secrets', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const files = {
    '.env.example': 'TOKEN=\nMODE=dark\n',
    'berth.json': '{"start": "bun app.ts"}',
    'app.ts': app('up', 'console.log(process.env.TOKEN, process.env.MODE);'),
  }
  const id = await project(trace, server, files)
  await trace.call('GET', `/projects/${id}/secrets`)
  await trace.call('PUT', `/projects/${id}/secrets`, { secrets: { TOKEN: 'a long secret' } })
  await trace.call('POST', `/projects/${id}/init`, {})
  await rested(trace, id)
  await ended(trace, id)
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

test('an app that ends while it is up, is started again, and ends for good', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const program = `const { existsSync, writeFileSync } = require('fs')
console.log('begins')
if (existsSync('broken')) process.exit(7)
Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch({ url }) {
  if (url.endsWith('/break')) writeFileSync('broken', '')
  if (!url.endsWith('/')) setTimeout(() => process.exit(5), 50)
  return new Response('up')
} })
`
  const id = await project(trace, server, { 'berth.json': '{"start": "bun app.js"}', 'app.js': program })
  const { url } = await shown(berth, id)
  const begins = async (count: number) => {
    const isThere = async () => (await logged(berth, id)).split('begins').length > count
    await until(isThere, `the app to begin for the ${count}th time`, 30_000)
  }
  await fetch(`${url}end`)
  await begins(2)
  await until(async () => (await shown(berth, id)).crash === undefined, 'the app to be up again', 30_000)
  await trace.page(`${url}`)
  await fetch(`${url}break`)
  await until(async () => (await shown(berth, id)).crash !== undefined, 'the app to be down', 30_000)
  await trace.page(`${url}`)
  await begins(4)
  await trace.events()
  await trace.log(`/projects/${id}/logs?tail=500`)
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

test('workers beside an app', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const files = {
    'berth.json': JSON.stringify({
      start: 'bun app.ts',
      workers: { once: 'echo done', jobs: 'echo works; exec sleep 600' },
    }),
    'app.ts': app('up'),
  }
  const id = await project(trace, server, files)
  const states = async () =>
    ((await shown(berth, id)).workers as { name: string; status: string }[]).map(({ status }) => status)
  await until(
    async () => (await states()).sort().join() === 'running,stopped',
    'the workers to have begun',
    20_000,
  )
  await trace.call('GET', `/projects/${id}`)
  await ended(trace, id)
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

test('a server that stops and is deleted with its app', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const id = await project(trace, server, { 'berth.json': '{"start": "bun app.ts"}', 'app.ts': app('up') })
  const { url } = await shown(berth, id)
  await trace.call('POST', `/servers/${server}/actions`, { action: 'stop' })
  await trace.call('GET', `/projects/${id}`)
  await trace.page(`${url}`)
  await trace.call('POST', `/servers/${server}/actions`, { action: 'start' })
  await until(
    async () => (await shown(berth, id)).runtime_status === 'running',
    'the app to be up again',
    30_000,
  )
  await trace.page(`${url}`)
  await ended(trace, id)
  await trace.call('DELETE', `/servers/${server}`)
  await trace.call('GET', `/projects/${id}`)
  await trace.events()
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

test('a deployment: live, replaced, refused, pushed, deleted', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const write = (path: string, content: string) =>
    berth.call('PUT', `/servers/${server}/files`, { path, content })
  await write('index.html', 'page')
  const { url } = await trace.call('POST', `/servers/${server}/deployments`)
  await trace.page(url)
  await write('berth.json', '{"install": "echo installing", "start": "bun app.ts"}')
  await write('app.ts', app('one', 'console.log("begins");'))
  await trace.call('POST', `/servers/${server}/deployments`)
  await trace.page(url)
  await write('app.ts', 'console.error("no luck"); process.exit(3)')
  await trace.call('POST', `/servers/${server}/deployments`)
  await trace.page(url)
  await trace.call('GET', `/servers/${server}/deployments`)
  const content = app('three')
  await trace.call('POST', `/servers/${server}/deployments/push`, {
    files: [
      { path: 'app.ts', content },
      { path: 'berth.json', content: '{"start": "bun app.ts"}' },
    ],
  })
  await trace.page(url)
  await trace.log(`/servers/${server}/deployments/logs?tail=500`)
  await trace.call('GET', `/servers/${server}/files`)
  await trace.call('DELETE', `/servers/${server}/deployments`)
  await trace.gone(url)
  await trace.events()
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)

for (const [name, goal] of Object.entries({
  'from a template': 'A notes page',
  'from directives': 'A page\nwrite: index.html <<< <h1>Notes</h1>',
  'that fails in its build': `A page\n${manifest({ build: 'echo no; exit 3', static: { folder: '' } })}`,
  'that does not start': `An app\n${manifest({ start: 'echo gone; exit 1' })}`,
})) {
  test(`a build ${name}`, async () => {
    const server = await berth.server()
    const trace = new Trace(berth, server)
    const { build_id } = await trace.call('POST', `/servers/${server}/builds`, { goal })
    const { url } = await over(berth, server, build_id)
    await trace.call('GET', `/servers/${server}/builds/${build_id}`)
    if (url) await trace.page(url)
    await trace.log(`/servers/${server}/builds/${build_id}/logs?tail=500`)
    await trace.call('GET', `/servers/${server}/deployments`)
    await trace.events()
    expect(trace.toString()).toMatchSnapshot()
  }, 120_000)
}

test('a build, while it is under way', async () => {
  const server = await berth.server()
  const trace = new Trace(berth, server)
  const id = await begun(berth, server, `A landing page\n${HELD.install}`)
  await reaches(berth, server, id, 'install')
  await trace.call('GET', `/servers/${server}/builds/${id}`)
  const { build_id: next } = await trace.call('POST', `/servers/${server}/builds`, { goal: 'another' })
  await letGo(berth, server)
  await over(berth, server, id)
  await trace.call('GET', `/servers/${server}/builds/${id}`)
  await over(berth, server, next)
  await trace.events()
  expect(trace.toString()).toMatchSnapshot()
}, 120_000)
