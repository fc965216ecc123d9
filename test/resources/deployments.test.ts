import { expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { isProjectUrl } from '../support/ports.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests()

const write = (serverId: string, path: string, content: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path, content })

const publish = (serverId: string) => berth.call('POST', `/servers/${serverId}/deployments`)

const list = async (serverId: string) =>
  (await berth.call('GET', `/servers/${serverId}/deployments`)).body.deployments

const textOf = async (url: string) => (await fetch(url)).text()

const eventsOf = async (serverId: string, name: string) => {
  const { events } = (await berth.control('GET', '/events')).body
  return events.filter(
    ({ event, data }: { event: string; data: { server_id?: string } }) =>
      event === name && data.server_id === serverId,
  )
}

/** An app that answers with a text. */
const app = (answer: string) =>
  `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response(${JSON.stringify(answer)}) })`

test('a workspace of files is published, and again under the same URL', async () => {
  const serverId = await berth.server()
  expect(await list(serverId)).toEqual([])
  await write(serverId, 'index.html', 'first')
  const { status, body } = await publish(serverId)
  expect(status).toBe(201)
  const detected = {
    ...{ kind: 'static files', directory: '.', serves: '.', health: '/' },
    ...{ install: null, build: null, release: null, start: null, port: null, tools: [], workers: {} },
    ...{
      evidence: [{ file: 'index.html', line: null, says: 'exists' }],
      left_out: [],
      others: [],
      warnings: [],
    },
  }
  expect(body).toEqual({ url: expect.any(String), status: 'live', app: detected, warnings: [] })
  expect(body.url).toSatisfy(isProjectUrl)
  expect(await textOf(body.url)).toBe('first')
  const published = { url: body.url, live: true, app: detected, warnings: [], workers: [] }
  expect(await list(serverId)).toEqual([published])
  expect((await berth.call('GET', `/servers/${serverId}`)).body.server.publicUrl).toBe(body.url)
  expect(await eventsOf(serverId, 'deployment.live')).toHaveLength(1)

  await write(serverId, 'dist/index.html', 'built')
  const evidence = [{ file: 'dist/index.html', line: null, says: 'exists' }]
  const built = { ...detected, evidence, serves: 'dist' }
  expect((await publish(serverId)).body).toEqual({ ...body, app: built })
  expect(await textOf(body.url)).toBe('built')
  expect(await list(serverId)).toHaveLength(1)
})

test('a workspace without an app is published as a listing, and the response and the log say so', async () => {
  const serverId = await berth.server()
  await write(serverId, 'notes/one.txt', 'one')
  const { url, app: detected } = (await publish(serverId)).body
  expect(detected).toMatchObject({
    kind: 'static files, index of the directory',
    evidence: [],
    directory: '.',
  })
  const { body } = await berth.call('GET', `/servers/${serverId}/deployments/logs`)
  expect(body.logs[0].text).toStartWith('Found: static files, index of the directory. Nothing here says how')
  expect(await textOf(url)).toContain('notes/')
  expect(await textOf(`${url}notes/one.txt`)).toBe('one')
})

test('files of projects are not published with the workspace, a folder of that name is', async () => {
  const serverId = await berth.server()
  const { body } = await berth.call('POST', `/servers/${serverId}/projects`, { name: 'hidden things' })
  await write(serverId, `projects/${body.slug}/data.txt`, 'private')
  await write(serverId, `projects/${body.slug}/index.html`, 'private')
  await write(serverId, 'projects/mine/page.html', 'mine')
  const { url } = (await publish(serverId)).body
  const path = `projects/${body.slug}`
  for (const one of [
    path,
    `${path}/`,
    `/${path}/data.txt`,
    `${path}/data%2etxt`,
    `%70rojects/${body.slug}/data.txt`,
  ]) {
    expect((await fetch(`${url}${one}`)).status).toBe(404)
  }
  const listing = await textOf(`${url}projects/`)
  expect(listing).toContain('mine/')
  expect(listing).not.toContain(body.slug)
  expect(await textOf(`${url}projects/mine/page.html`)).toBe('mine')
})

test('an app is published, and no caller notices when it is replaced', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.ts', app('one'))
  const { url } = (await publish(serverId)).body
  expect(await textOf(url)).toBe('one')
  await write(serverId, 'index.ts', app('two'))
  let stop = false
  const answers = new Set<string>()
  const callers = Array.from({ length: 4 }, async () => {
    while (!stop) {
      const response = await fetch(url)
      answers.add(response.status === 200 ? await response.text() : String(response.status))
    }
  })
  await until(() => answers.has('one'), 'the callers have begun')
  await publish(serverId)
  expect(await textOf(url)).toBe('two')
  await until(() => answers.has('two'), 'the callers see it too')
  stop = true
  await Promise.all(callers)
  expect([...answers].sort()).toEqual(['one', 'two'])
})

/** Says why a program that ends with code 3 did not come up. */
const EXIT_3 = { reason: 'The app did not start: it ended with exit code 3.', at: expect.any(String) }

test('one that does not come up is refused with the end of its log, and the old one stays', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.ts', 'console.log("no luck today"); process.exit(3)')
  const first = await publish(serverId)
  expect([first.status, first.body.error]).toEqual([502, 'compute_backend_error'])
  expect(first.body.message).toContain('no luck today')
  expect(await list(serverId)).toEqual([])

  await write(serverId, 'index.ts', app('good'))
  const { url } = (await publish(serverId)).body
  await write(serverId, 'index.ts', 'process.exit(3)')
  expect((await publish(serverId)).status).toBe(502)
  expect(await textOf(url)).toBe('good')
  expect(await list(serverId)).toMatchObject([{ url, live: true, failed_change: EXIT_3 }])
})

test('files stay, too, where an app that is published over them does not come up', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.html', 'pages')
  const { url } = (await publish(serverId)).body
  await write(serverId, 'app.ts', 'process.exit(3)')
  await write(serverId, 'berth.json', '{"start": "bun app.ts"}')
  expect((await publish(serverId)).status).toBe(502)
  expect(await textOf(url)).toBe('pages')
  expect(await list(serverId)).toMatchObject([{ url, live: true, failed_change: EXIT_3 }])
  await write(serverId, 'app.ts', app('an app at last'))
  expect((await publish(serverId)).status).toBe(201)
  expect(await textOf(url)).toBe('an app at last')
})

test('it is not live while the server sleeps, and answers again when it runs', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.ts', app('awake'))
  const { url } = (await publish(serverId)).body
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
  expect(await list(serverId)).toMatchObject([{ url, live: false }])
  const asleep = await fetch(url)
  expect(asleep.status).toBe(503)
  expect(await asleep.text()).toContain(`berth servers start ${serverId}`)
  expect((await berth.call('GET', `/servers/${serverId}`)).body.server.publicUrl).toBeNull()
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'start' })
  expect(await textOf(url)).toBe('awake')
  await until(async () => (await list(serverId))[0].live, 'the deployment to be live again')
})

test('it ends with its server, which is reported', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.html', 'x')
  const { url } = (await publish(serverId)).body
  await berth.call('DELETE', `/servers/${serverId}`)
  const [removed] = await eventsOf(serverId, 'deployment.removed')
  expect(removed.data).toMatchObject({ server_id: serverId, url })
  await expect(fetch(url)).rejects.toThrow()
})

test('it ends with a server that sleeps, too, which is reported', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.html', 'x')
  const { url } = (await publish(serverId)).body
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
  await berth.call('DELETE', `/servers/${serverId}`)
  const removed = await eventsOf(serverId, 'deployment.removed')
  expect(removed).toHaveLength(1)
  expect(removed[0].data).toEqual({ server_id: serverId, url })
})

test('it is deleted by itself: the files stay, its URL is free, and the next one gets a log of its own', async () => {
  const serverId = await berth.server()
  expect((await berth.call('DELETE', `/servers/${serverId}/deployments`)).status).toBe(404)
  await write(serverId, 'index.ts', app('published'))
  const { url } = (await publish(serverId)).body
  const { status, body } = await berth.call('DELETE', `/servers/${serverId}/deployments`)
  expect([status, body]).toEqual([200, { url, deleted: true }])
  expect(await list(serverId)).toEqual([])
  expect((await berth.call('GET', `/servers/${serverId}`)).body.server.publicUrl).toBeNull()
  expect(fetch(url)).rejects.toThrow()
  const [removed] = await eventsOf(serverId, 'deployment.removed')
  expect(removed.data).toEqual({ server_id: serverId, url })
  const { files } = (await berth.call('GET', `/servers/${serverId}/files`)).body
  expect(files).toEqual(['index.ts'])
  const processes = (await berth.call('POST', `/servers/${serverId}/exec`, { command: 'ps -ef' })).body.stdout
  expect(processes).not.toContain('index.ts')
  expect((await berth.call('DELETE', `/servers/${serverId}/deployments`)).status).toBe(404)
  const again = (await publish(serverId)).body.url
  expect(await textOf(again)).toBe('published')
  const { logs } = (await berth.call('GET', `/servers/${serverId}/deployments/logs`)).body
  expect(logs.filter(({ text }: { text: string }) => text.startsWith('Starts:'))).toHaveLength(1)
})

test('a sleeping server is woken to publish', async () => {
  const serverId = await berth.server()
  await write(serverId, 'index.html', 'woken')
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
  const { url } = (await publish(serverId)).body
  expect(await textOf(url)).toBe('woken')
})

test('its log is read as that of a project, also where it never came up, and since a time', async () => {
  const serverId = await berth.server()
  const logs = async (query = '') =>
    (await berth.call('GET', `/servers/${serverId}/deployments/logs${query}`)).body.logs
  const texts = async (query = '') => (await logs(query)).map(({ text }: { text: string }) => text)
  expect(await logs()).toEqual([])
  await write(serverId, 'index.ts', 'throw new Error("never came up")')
  expect((await publish(serverId)).status).toBe(502)
  expect(await texts()).toContainEqual(expect.stringContaining('never came up'))

  await write(serverId, 'index.ts', `console.log('it is up'); ${app('one')}`)
  expect((await publish(serverId)).status).toBe(201)
  // Nothing of the earlier try is lost.
  expect(await texts()).toContainEqual(expect.stringContaining('never came up'))
  expect(await texts()).toContain('it is up')
  expect(await texts('?tail=1')).toHaveLength(1)
  const [{ at }] = (await logs()).slice(-1)
  expect(await texts(`?since=${at}`)).not.toContainEqual(expect.stringContaining('never came up'))
  expect(await texts('?since=1h')).toEqual(await texts())
  expect(await texts('?since=2999-01-01T00:00:00Z')).toEqual([])
  const refused = await berth.call('GET', `/servers/${serverId}/deployments/logs?since=yesterday`)
  expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('"since"')])
  expect((await berth.call('GET', '/servers/srv_00000000000000000000000000/deployments/logs')).status).toBe(
    404,
  )
})

test('its log is followed while it runs', async () => {
  const serverId = await berth.server()
  await write(
    serverId,
    'index.ts',
    app('one').replace('fetch: () =>', 'fetch: () => console.log("asked") ||'),
  )
  const { body } = await publish(serverId)
  const stop = new AbortController()
  const response = await berth.fetch(`/servers/${serverId}/deployments/logs?tail=0`, {
    headers: { accept: 'text/event-stream' },
    signal: stop.signal,
  })
  await textOf(body.url)
  let seen = ''
  for await (const chunk of response.body ?? []) {
    seen += new TextDecoder().decode(chunk)
    if (seen.includes('asked')) break
  }
  stop.abort()
  expect(seen).toContain('event: line')
})
