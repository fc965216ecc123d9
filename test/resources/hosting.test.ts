import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { berthForTests, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { archiveOf, created, logged, ready, settled, shown } from '../support/projects.ts'

/** What happens when things that concern one app, or one server's apps, come at the same time. */

const berth = await berthForTests({ flags: { plan: { projects: { small: 50 } } } })

const write = (serverId: string, path: string, content: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path, content })

const publish = (serverId: string) => berth.call('POST', `/servers/${serverId}/deployments`)

const act = (serverId: string, action: string) =>
  berth.call('POST', `/servers/${serverId}/actions`, { action })

const setSecrets = (id: string, secrets: object) => berth.call('PUT', `/projects/${id}/secrets`, { secrets })

const phase = (id: string, wanted: string) =>
  until(async () => (await shown(berth, id)).init_phase === wanted, `phase ${wanted}`, 20_000)

const exists = (serverId: string, path: string) =>
  until(async () => (await berth.exec(serverId, `ls ${path}`)).exitCode === 0, `${path} to be there`, 20_000)

const textOf = async (url: string | null) => (await fetch(url ?? '')).text()

const eventsOf = async (id: string): Promise<string[]> => {
  const { events } = (await berth.control('GET', '/events')).body
  const its = events.filter(({ data }: { data: { project_id?: string } }) => data.project_id === id)
  return its.map(({ event }: { event: string }) => event)
}

/** An app that tells its variable V, after `first`. */
const app = (first = '') =>
  `${first}\nBun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('v=' + process.env.V) })`

const NEVER_HEALTHY = {
  'index.ts':
    "Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('', { status: 500 }) })",
}

/** An upload that takes a while to unpack. */
const large = () =>
  archiveOf({
    'index.html': 'large',
    ...Object.fromEntries(
      Array.from({ length: 6000 }, (_, number) => [`files/${number}.txt`, String(number)]),
    ),
  })

test('what is published and made at the same time gets ports of its own', async () => {
  const [one, two] = [await berth.server(), await berth.server()]
  await write(one, 'index.html', 'one')
  await write(two, 'index.html', 'two')
  const [first, second, project] = await Promise.all([
    publish(one),
    publish(two),
    berth.call('POST', `/servers/${one}/projects`, { visibility: 'public' }),
  ])
  expect([first.status, second.status, project.status]).toEqual([201, 201, 201])
  expect(new Set([first.body.url, second.body.url, project.body.url]).size).toBe(3)
  expect([await textOf(first.body.url), await textOf(second.body.url)]).toEqual(['one', 'two'])
})

test('a project is removed at once while its app is being asked for its health', async () => {
  const serverId = await berth.server()
  const { id } = await created(berth, serverId, { source: await archiveOf(NEVER_HEALTHY) })
  await phase(id, 'healthcheck')
  const began = performance.now()
  expect((await berth.call('DELETE', `/projects/${id}`)).status).toBe(200)
  expect(performance.now() - began).toBeLessThan(20_000)
}, 120_000)

test('variables that change while an app starts are those that it runs with', async () => {
  const serverId = await berth.server()
  const first =
    "if (process.env.V === 'bad') { while (!require('fs').existsSync('go')) await Bun.sleep(20); process.exit(4) }"
  const source = await archiveOf({ 'index.ts': app(first) })
  const { id, slug, url } = await created(berth, serverId, {
    visibility: 'public',
    env: { V: 'bad' },
    source,
  })
  await phase(id, 'healthcheck')
  await setSecrets(id, { V: 'good' })
  await write(serverId, `projects/${slug}/go`, '')
  expect(await settled(berth, id)).toMatchObject({ init_phase: 'ready', runtime_status: 'running' })
  expect(await textOf(url)).toBe('v=good')
  expect(await eventsOf(id)).toEqual(['project.ready'])
}, 120_000)

test('of variables that change while an app restarts, the last count, without a restart for each', async () => {
  const serverId = await berth.server()
  const source = await archiveOf({ 'index.ts': app('await Bun.sleep(200)') })
  const { id, url } = await ready(berth, serverId, { visibility: 'public', env: { V: 'first' }, source })
  for (let number = 1; number <= 12; number += 1) await setSecrets(id, { V: `number ${number}` })
  await until(async () => (await textOf(url)) === 'v=number 12', 'the last value to arrive', 20_000)
  expect((await logged(berth, id)).match(/Starts:/g)?.length).toBeLessThan(8)
}, 120_000)

test('variables that change while a watched app is built are not undone when it is started', async () => {
  const serverId = await berth.server()
  const manifest = {
    build: 'touch begun; until [ -e go ]; do sleep 0.05; done; rm begun',
    start: 'exec bun index.ts',
    watch: true,
  }
  const source = await archiveOf({ 'berth.json': JSON.stringify(manifest), 'index.ts': app(), go: '' })
  const { id, slug, url } = await ready(berth, serverId, { visibility: 'public', env: { V: 'old' }, source })
  await berth.exec(serverId, `rm projects/${slug}/go`)
  await exists(serverId, `projects/${slug}/begun`)
  await setSecrets(id, { V: 'new' })
  await until(async () => (await textOf(url)) === 'v=new', 'the new value to arrive', 20_000)
  const starts = (await logged(berth, id)).match(/Answers on port/g)?.length ?? 0
  await berth.exec(serverId, `touch projects/${slug}/go`)
  await until(
    async () => ((await logged(berth, id)).match(/Answers on port/g)?.length ?? 0) > starts,
    'the app to be started again',
    20_000,
  )
  expect(await textOf(url)).toBe('v=new')
}, 120_000)

test('publicUrl is null where what was published does not come up again', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.ts', app())
  expect((await publish(serverId)).status).toBe(201)
  await write(serverId, 'index.ts', 'process.exit(3)')
  await act(serverId, 'restart')
  const { publicUrl } = (await berth.call('GET', `/servers/${serverId}`)).body.server
  expect(publicUrl).toBeNull()
})

test.each(['stop', 'restart'])(
  'a publication under which the server is told to %s is 502, with the reason',
  async (action) => {
    const serverId = await berth.server()
    await write(serverId, 'berth.json', JSON.stringify({ install: 'touch begun; sleep 60', start: 'true' }))
    const published = publish(serverId)
    await exists(serverId, 'begun')
    await act(serverId, action)
    const { status, body } = await published
    expect([status, body.error]).toEqual([502, 'compute_backend_error'])
    expect(body.message).toContain('The server was stopped.')
  },
)

test('an upload is not begun with before it is there, whatever its server does', async () => {
  const serverId = await berth.server()
  const making = berth.call('POST', `/servers/${serverId}/projects`, { source: await large() })
  await until(
    async () => (await berth.call('GET', `/servers/${serverId}/projects`)).body.projects.length > 0,
    'the project to be there',
  )
  await act(serverId, 'restart')
  const { status, body } = await making
  expect(status).toBe(201)
  expect(await settled(berth, body.id)).toMatchObject({ init_phase: 'ready' })
  expect(await eventsOf(body.id)).toEqual(['project.ready'])
}, 120_000)

test('a project that is removed while its upload is unpacked leaves no files', async () => {
  const serverId = await berth.server()
  const making = berth.call('POST', `/servers/${serverId}/projects`, { source: await large() })
  let id: string | undefined
  await until(async () => {
    id = (await berth.call('GET', `/servers/${serverId}/projects`)).body.projects[0]?.id
    return id !== undefined
  }, 'the project to be there')
  expect((await berth.call('DELETE', `/projects/${id}`)).status).toBe(200)
  expect((await making).status).toBe(404)
  expect((await berth.call('GET', `/servers/${serverId}/files`)).body.files).toEqual([])
}, 120_000)

test('code that comes does not replace a folder that somebody else has made', async () => {
  const serverId = await berth.server()
  await write(serverId, 'projects/mine/notes.txt', 'precious')
  const { slug } = await ready(berth, serverId, {
    name: 'mine',
    source: await archiveOf({ 'index.html': 'x' }),
  })
  expect(slug).toBe('mine-2')
  const { body } = await berth.call('GET', `/servers/${serverId}/files?path=projects/mine/notes.txt`)
  expect(body.content).toBe('precious')
  // A blank project takes the code that lies there.
  expect((await created(berth, serverId, { name: 'mine' })).slug).toBe('mine')
})

test('at the ports of projects and deployments callers wait for the apps, from the ready line on', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-ports-'))
  try {
    const first = await testBerth({ dataDir })
    const serverId = await first.server()
    const urls: string[] = []
    for (const name of ['one', 'two', 'three']) {
      const source = await archiveOf({ 'index.ts': app() })
      const project = await ready(first, serverId, { name, visibility: 'public', source, env: { V: name } })
      urls.push(String(project.url))
    }
    await first.call('PUT', `/servers/${serverId}/files`, { path: 'index.html', content: 'page' })
    urls.push((await first.call('POST', `/servers/${serverId}/deployments`)).body.url)
    await first.stop()
    await using again = await testBerth({ dataDir })
    expect(await Promise.all(urls.map(textOf))).toEqual(['v=one', 'v=two', 'v=three', 'page'])
    expect((await again.call('GET', '/projects')).body.projects).toHaveLength(3)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('connections to a project that send nothing, or half a head, are closed within seconds', async () => {
  const source = await archiveOf({ 'index.html': 'page' })
  const { url } = await ready(berth, await berth.server(), { visibility: 'public', source })
  const { port } = new URL(String(url))
  const closed = async (sent: string): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let text = ''
    await Bun.connect({
      hostname: '127.0.0.1',
      port: Number(port),
      socket: {
        open: (socket) => void socket.write(sent),
        data: (_, chunk) => {
          text += chunk.toString('latin1')
        },
        close: () => resolve(),
      },
    })
    await promise
    return text.split('\r\n', 1)[0] ?? ''
  }
  const whole = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const began = performance.now()
  const lines = await Promise.all([closed(''), closed('GET / HT'), closed(whole)])
  expect(lines).toEqual(['', 'HTTP/1.1 408 Request Timeout', 'HTTP/1.1 200 OK'])
  expect(performance.now() - began).toBeLessThan(30_000)
})
