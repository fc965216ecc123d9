import { expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { readEvents } from '../../support/events.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, logged, ready } from '../../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 20 } } } })
const serverId = await berth.server()

const write = (slug: string, path: string, content: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path: `projects/${slug}/${path}`, content })

const app = (answer: string) =>
  `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response(${JSON.stringify(answer)}) })`

const textOf = async (url: string | null) => (await fetch(url ?? '')).text()

test('an app with "watch" is started again when its files change, and not for what tools write', async () => {
  const source = await archiveOf({
    'berth.json': JSON.stringify({ watch: true, start: 'bun app.ts' }),
    'app.ts': app('one'),
  })
  const { id, slug, url } = await ready(berth, serverId, { visibility: 'public', source })
  const starts = async () => (await logged(berth, id)).match(/Starts:/g)?.length
  await write(slug, 'node_modules/x/index.js', '1')
  await write(slug, 'data/app.db', '1')
  await write(slug, 'app.ts', app('two'))
  await until(async () => (await textOf(url)) === 'two', 'the changed app to answer')
  expect(await starts()).toBe(2)
  // A command on the server changes files as well as the API does.
  await berth.exec(serverId, `sed -i s/two/three/ projects/${slug}/app.ts`)
  await until(async () => (await textOf(url)) === 'three', 'the app to be changed by a command')
})

test('one that does not start any more leaves the last that did, until it is fixed', async () => {
  const source = await archiveOf({
    'berth.json': JSON.stringify({ watch: true, start: 'bun app.ts' }),
    'app.ts': app('good'),
  })
  const { id, slug, url } = await ready(berth, serverId, { visibility: 'public', source })
  await write(slug, 'app.ts', 'this is no program')
  await until(
    async () => (await logged(berth, id)).includes('The version before goes on'),
    'the failure to be told',
  )
  expect(await textOf(url)).toBe('good')
  const project = async () => (await berth.call('GET', `/projects/${id}`)).body
  await until(async () => (await project()).failed_change !== undefined, 'the project to say so')
  expect(await project()).toMatchObject({
    runtime_status: 'running',
    init_phase: 'ready',
    failed_change: { reason: expect.stringContaining('exit code') },
  })
  await write(slug, 'app.ts', app('fixed'))
  await until(async () => (await textOf(url)) === 'fixed', 'the fixed app to answer')
  await until(async () => (await project()).failed_change === undefined, 'the project to say so')

  // A bring-up that failed is over, too, when a later change comes up.
  await write(slug, 'app.ts', 'this is no program')
  await berth.call('POST', `/projects/${id}/restart`)
  await until(async () => (await project()).init_phase === 'failed', 'the bring-up to fail')
  await write(slug, 'app.ts', app('again'))
  await until(async () => (await textOf(url)) === 'again', 'the app to answer again')
  await until(async () => (await project()).init_phase === 'ready', 'the project to say so')
  expect((await project()).runtime_status).toBe('running')
})

test('what is built is built again before it is started', async () => {
  const source = await archiveOf({
    'berth.json': JSON.stringify({
      watch: true,
      build: 'mkdir -p dist && tr a-z A-Z < words.txt > dist/words.txt',
      start: 'exec bun app.ts',
    }),
    'words.txt': 'first',
    'app.ts': `const words = await Bun.file('dist/words.txt').text()
      Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response(words) })`,
  })
  const { slug, url } = await ready(berth, serverId, { visibility: 'public', source })
  expect(await textOf(url)).toBe('FIRST')
  await write(slug, 'words.txt', 'second')
  await until(async () => (await textOf(url)) === 'SECOND', 'the new build to answer')
})

test('pages of watched files reload when a file changes; those of others carry nothing for it', async () => {
  const page = '<!doctype html><title>t</title><body><p>one</p></body>'
  const watched = await ready(berth, serverId, {
    visibility: 'public',
    source: await archiveOf({ 'berth.json': '{"watch": true, "static": {}}', 'index.html': page }),
  })
  expect(await textOf(watched.url)).toContain('/.berth/reload')
  const leaving = new AbortController()
  const stream = await fetch(`${watched.url}.berth/reload`, { signal: leaving.signal })
  const events = readEvents(stream)
  const first = (await events.next()).value
  await write(watched.slug, 'index.html', page.replace('one', 'two'))
  const second = (await events.next()).value
  expect(second?.data).not.toBe(first?.data)
  expect(await textOf(watched.url)).toContain('<p>two</p>')
  leaving.abort()

  const plain = await ready(berth, serverId, {
    visibility: 'public',
    source: await archiveOf({ 'index.html': page }),
  })
  expect(await textOf(plain.url)).toBe(page)
})

test('an app that does not start again with its server is logged by its message, without a stack', async () => {
  const source = await archiveOf({ 'berth.json': '{"start": "bun app.ts"}', 'app.ts': app('up') })
  const { slug } = await ready(berth, serverId, { source })
  await write(slug, 'app.ts', 'process.exit(3)')
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'start' })
  const warning = () => berth.log().match(/.*the app of a project did not start again.*/)?.[0]
  await until(() => warning() !== undefined, 'the warning to be logged')
  expect(warning()).toContain('exit code 3')
  expect(warning()).not.toContain(' at ')
})

test('an app that responds again after a crash is ready, though its last bring-up failed', async () => {
  const exits = app('up').replace(
    'fetch: ()',
    "fetch: ({ url }) => url.endsWith('/exit') ? process.exit(3) :",
  )
  const code = exits.replace(': =>', ':')
  const source = await archiveOf({ 'berth.json': '{"start": "bun app.ts"}', 'app.ts': code })
  const { id, slug, url } = await ready(berth, serverId, { visibility: 'public', source })
  const phase = async () => (await berth.call('GET', `/projects/${id}`)).body.init_phase
  await write(slug, 'app.ts', 'this is no program')
  await berth.call('POST', `/projects/${id}/restart`)
  await until(async () => (await phase()) === 'failed', 'the bring-up to fail')
  await write(slug, 'app.ts', code)
  await fetch(`${url}exit`).catch(() => null)
  await until(async () => (await phase()) === 'ready', 'the project to say that the app responds')
})
