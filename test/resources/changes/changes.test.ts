import { afterAll, describe, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { TestChanges } from '../../support/change-stream.ts'
import { accessToken, registerClient, signedInBrowser } from '../../support/oauth.ts'

const berth = await berthForTests({ flags: { 'allow-local-webhooks': true } })

// Whatever a test is sent is as the document says.
afterAll(async () => expect(await TestChanges.undocumented('Change')).toEqual([]))

/** An object as its GET returns it. */
const shown = async (path: string, field?: string) => {
  const { body } = await berth.call('GET', path)
  return field === undefined ? body : body[field]
}

test('a socket and an event stream send each server as its GET returns it, and null once it is deleted', async () => {
  using socket = await TestChanges.socket(berth)
  using events = await TestChanges.events(berth)
  const server = await berth.server({ task: 'first' })
  for (const changes of [socket, events]) {
    const added = await changes.next('server', ({ id }) => id === server)
    expect(added).toEqual({ type: 'server', id: server, value: expect.objectContaining({ task: 'first' }) })
  }
  await berth.call('PATCH', `/servers/${server}`, { task: 'second' })
  await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
  for (const changes of [socket, events]) {
    const { value } = await changes.next('server', (sent) => sent.value?.status === 'sleeping')
    expect(value.task).toBe('second')
    changes.clear()
  }
  const { storageUsedGb: _, ...asleep } = await shown(`/servers/${server}`, 'server')
  await berth.exec(server, 'true')
  for (const changes of [socket, events]) {
    const woken = await changes.next('server', ({ value }) => value?.status === 'running')
    expect(woken.value).toEqual({
      ...asleep,
      status: 'running',
      creditsUsed: expect.any(Number),
      storageUsedGb: expect.any(Number),
    })
  }
  await berth.exec(server, 'head -c 300000 /dev/zero > file')
  for (const changes of [socket, events])
    await changes.next('server', ({ value }) => value?.storageUsedGb >= 0.0003)
  await berth.call('DELETE', `/servers/${server}`)
  for (const changes of [socket, events]) {
    const deleted = await changes.next('server', ({ id, value }) => id === server && value === null)
    expect(deleted).toEqual({ type: 'server', id: server, value: null })
  }
})

test('everything on a server is sent as its GET returns it, and as gone when the server is', async () => {
  const server = await berth.server()
  using changes = await TestChanges.socket(berth)
  const ofServer = ({ server_id }: { server_id?: string }) => server_id === server

  const { task_id } = (await berth.call('POST', `/servers/${server}/tasks`, { goal: 'ask: Which?' })).body
  const task = await changes.next('task', ({ id, value }) => id === task_id && value?.status !== 'running')
  expect(task).toEqual({
    type: 'task',
    id: task_id,
    server_id: server,
    value: await shown(`/servers/${server}/tasks/${task_id}`, 'task'),
  })

  const opened = await berth.call('POST', `/servers/${server}/terminals`, { command: 'sleep 300' })
  const { id: terminal } = opened.body.terminal
  expect(await changes.next('terminal', ofServer)).toEqual({
    type: 'terminal',
    id: terminal,
    server_id: server,
    value: await shown(`/servers/${server}/terminals/${terminal}`, 'terminal'),
  })

  await berth.call('PUT', `/servers/${server}/files`, { path: 'index.html', content: 'x' })
  await berth.call('POST', `/servers/${server}/deployments`)
  const live = await changes.next('deployment', ({ value }) => value?.live)
  const [deployment] = await shown(`/servers/${server}/deployments`, 'deployments')
  expect(live).toEqual({ type: 'deployment', id: server, server_id: server, value: deployment })
  const published = await changes.next('server', ({ value }) => value?.publicUrl)
  expect(published.value.publicUrl).toBe(deployment.url)

  const made = await berth.call('POST', `/servers/${server}/projects`, { name: 'x', env: { A: 'secret-1' } })
  const { id: project } = made.body
  expect(await changes.next('project', ofServer)).toEqual({
    type: 'project',
    id: project,
    server_id: server,
    value: await shown(`/projects/${project}`),
  })
  await berth.call('PATCH', `/projects/${project}`, { name: 'y' })
  await changes.next('project', ({ value }) => value?.name === 'y')
  expect(await changes.next('secret', ({ id }) => id === project)).toEqual({
    type: 'secret',
    id: project,
    server_id: server,
    value: { project_id: project, keys: ['A'] },
  })
  await berth.call('PUT', '/secrets', { server_id: server, secrets: { C: 'secret-2', B: 'secret-3' } })
  const secret = await changes.next('secret', ({ id }) => id === server)
  expect(secret.value).toEqual({ server_id: server, keys: ['B', 'C'] })

  const { build_id } = (await berth.call('POST', `/servers/${server}/builds`, { goal: 'a page' })).body
  await changes.next('build', ({ value }) => hasRunningStep(value))
  const built = await changes.next('build', ({ value }) => value?.status === 'completed')
  expect(built).toEqual({
    type: 'build',
    id: build_id,
    server_id: server,
    value: await shown(`/servers/${server}/builds/${build_id}`, 'build'),
  })

  await berth.call('DELETE', `/servers/${server}/deployments`)
  await changes.next('deployment', ({ value }) => value === null)

  expect(JSON.stringify(changes.messages)).not.toContain('secret-')
  await berth.call('DELETE', `/servers/${server}`)
  const gone: [string, string][] = [
    ['task', task_id],
    ['terminal', terminal],
    ['deployment', server],
    ['project', project],
    ['secret', project],
    ['secret', server],
    ['build', build_id],
  ]
  for (const [type, id] of gone) {
    const last = await changes.next(type, (sent) => sent.id === id && sent.value === null)
    expect(last).toEqual({ type, id, server_id: server, value: null })
  }
}, 120_000)

const hasRunningStep = (build: { steps: { status: string }[] } | null) =>
  build?.steps.some(({ status }) => status === 'running') ?? false

test('a terminal is sent again when a viewer comes and goes, and when its program has ended', async () => {
  const server = await berth.server()
  const opened = await berth.call('POST', `/servers/${server}/terminals`, { command: 'read x' })
  const path = `/servers/${server}/terminals/${opened.body.terminal.id}`
  using changes = await TestChanges.socket(berth)
  const url = `${berth.info.base_url.replace('http', 'ws')}${path}/attach?columns=50&rows=9`
  const headers = { authorization: `Bearer ${berth.info.api_key}` }
  const viewer = new WebSocket(url, { headers } as never)
  await changes.next('terminal', ({ value }) => value?.viewers === 1 && value.columns === 50)
  viewer.close()
  await changes.next('terminal', ({ value }) => value?.viewers === 0)
  await berth.call('POST', `${path}/input`, { text: '\n' })
  await changes.next('terminal', ({ value }) => value?.exit_code === 0)
  await berth.call('DELETE', path)
  await changes.next('terminal', ({ value }) => value === null)
})

test('keys, webhooks and the account are sent to a key of the whole account', async () => {
  using changes = await TestChanges.socket(berth)
  const { id: key, key: plaintext } = (await berth.call('POST', '/keys', { label: 'one' })).body
  const added = await changes.next('key', ({ id }) => id === key)
  expect(added).toEqual({ type: 'key', id: key, value: await keyOf(key) })
  await berth.call('GET', '/servers', undefined, { authorization: `Bearer ${plaintext}` })
  const used = await changes.next('key', ({ id, value }) => id === key && value?.last_used_at !== null)
  expect(used.value).toEqual(await keyOf(key))
  await berth.call('DELETE', `/keys/${key}`)
  await changes.next('key', ({ id, value }) => id === key && value === null)

  const wanted = { url: 'http://127.0.0.1:1/hook' }
  const { secret, ...webhook } = (await berth.call('POST', '/webhooks', wanted)).body
  const known = { ...webhook, disabled_at: null }
  expect(await changes.next('webhook')).toEqual({ type: 'webhook', id: webhook.id, value: known })
  await berth.call('DELETE', `/webhooks/${webhook.id}`)
  await changes.next('webhook', ({ value }) => value === null)
  expect(JSON.stringify(changes.messages)).not.toContain(secret)
  expect(JSON.stringify(changes.messages)).not.toContain(plaintext)
})

test('programs and browsers are sent when they get access, and when it ends', async () => {
  using changes = await TestChanges.socket(berth)
  await accessToken(berth, { client: await registerClient(berth.info.base_url) })
  // The browser of the person who lets the program in.
  const { id: browser } = await changes.next('browser')
  const sent = await changes.next('program')
  expect(sent.value).toEqual((await shown('/programs', 'programs'))[0])
  expect((await shown('/browsers', 'browsers'))[0]).toEqual(
    changes.messages.findLast(({ type }) => type === 'browser')?.value,
  )
  await berth.call('DELETE', `/programs/${sent.id}`)
  await changes.next('program', ({ id, value }) => id === sent.id && value === null)
  await berth.call('DELETE', `/browsers/${browser}`)
  await changes.next('browser', ({ id, value }) => id === browser && value === null)

  // Without its key, a session that it began is over.
  const { id: key, key: plaintext } = (await berth.call('POST', '/keys', { label: 'signs in' })).body
  await signedInBrowser(berth, { apiKey: plaintext })
  const byKey = await changes.next('browser', ({ id, value }) => id !== browser && value !== null)
  await berth.call('DELETE', `/keys/${key}`)
  await changes.next('browser', ({ id, value }) => id === byKey.id && value === null)
})

const keyOf = async (id: string) =>
  (await shown('/keys', 'keys')).find((one: { id: string }) => one.id === id)

test('the account is sent when it is charged, and when its plan and its number of servers change', async () => {
  const {
    body: { id, api_key },
  } = await berth.control('POST', '/accounts', { label: 'charged' })
  const headers = { authorization: `Bearer ${api_key}` }
  using changes = await TestChanges.socket(berth, headers)
  const { body: server } = await berth.call('POST', '/servers', {}, headers)
  const { value } = await changes.next('account', (sent) => sent.value?.servers === 1)
  expect(value).toMatchObject({ id, label: 'charged', servers: 1 })
  await changes.next('account', (sent) => sent.value?.credits_used > value.credits_used)
  const updated = await berth.control('PATCH', `/accounts/${id}`, { budget_cap: 77 })
  const changed = await changes.next('account', (sent) => sent.value?.budget_cap === 77)
  expect({ ...changed.value, credits_used: 0 }).toEqual({ ...updated.body, credits_used: 0 })
  await berth.call('DELETE', `/servers/${server.id}`, undefined, headers)
  await changes.next('account', (sent) => sent.value?.servers === 0)
})

describe('a stream leaves out', () => {
  test('other accounts, and for a scoped key what it does not reach', async () => {
    const [mine, other] = [await berth.server(), await berth.server()]
    const project = async () =>
      (await berth.call('POST', `/servers/${mine}/projects`, { name: 'x' })).body.id as string
    const [own, foreign] = [await project(), await project()]
    const keyFor = async (scope: object) =>
      (await berth.call('POST', '/keys', { label: 'k', ...scope })).body.key
    const of = async (key: string) => TestChanges.socket(berth, { authorization: `Bearer ${key}` })
    const { api_key } = (await berth.control('POST', '/accounts', { label: 'other' })).body
    using ofServer = await of(await keyFor({ allowed_server_ids: [mine] }))
    using ofProject = await of(await keyFor({ allowed_server_ids: [mine], allowed_project_ids: [own] }))
    using ofOther = await of(api_key)
    using all = await TestChanges.socket(berth)

    await berth.call('POST', '/keys', { label: 'unseen' })
    await berth.call('PATCH', `/servers/${other}`, { task: 'unseen' })
    await berth.call('POST', `/servers/${other}/projects`, { name: 'unseen' })
    await berth.call('PATCH', `/projects/${foreign}`, { name: 'seen by one' })
    await berth.call('PUT', `/projects/${foreign}/secrets`, { secrets: { A: 'x' } })
    await berth.call('PATCH', `/projects/${own}`, { name: 'seen' })
    await berth.call('PATCH', `/servers/${mine}`, { task: 'last' })
    for (const changes of [ofServer, ofProject, all])
      await changes.next('server', ({ value }) => value?.task === 'last')
    const of_ = ({ messages }: TestChanges) =>
      new Set(messages.filter(({ type }) => type !== 'ready').map(({ type, id }) => `${type} ${id}`))
    expect(of_(ofServer)).toEqual(
      new Set([`project ${foreign}`, `secret ${foreign}`, `project ${own}`, `server ${mine}`]),
    )
    expect(of_(ofProject)).toEqual(new Set([`project ${own}`, `server ${mine}`]))
    expect(all.messages.map(({ type }) => type)).toContain('key')
    // Its own change comes after all of those.
    const headers = { authorization: `Bearer ${api_key}` }
    const { body } = await berth.call('POST', '/keys', { label: 'own' }, headers)
    await ofOther.next('key', ({ id }) => id === body.id)
    expect(ofOther.messages.filter(({ type }) => type !== 'account' && type !== 'ready')).toEqual([
      expect.objectContaining({ id: body.id }),
    ])
  })
})

test('an app that crashes is sent with its crash, and so is a deployment', async () => {
  const server = await berth.server()
  using changes = await TestChanges.socket(berth)
  const app =
    "Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: (r) => r.url.endsWith('/die') ? process.exit(3) : new Response('x') })"
  await berth.call('PUT', `/servers/${server}/files`, { path: 'index.js', content: app })
  const { body } = await berth.call('POST', `/servers/${server}/deployments`)
  await changes.next('deployment', ({ value }) => value?.live)
  await fetch(`${body.url}die`).catch(() => {})
  const crashed = await changes.next('deployment', ({ value }) => value?.crash?.exit_code === 3)
  expect(crashed.id).toBe(server)
  await berth.call('DELETE', `/servers/${server}`)
})
