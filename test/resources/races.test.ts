import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, berthForTests } from '../support/berth.ts'
import { archiveOf, ready } from '../support/projects.ts'

const berth = await berthForTests()

const times = <T>(count: number, call: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => call(n)))

/** How many answers have each status. */
function statuses(answers: readonly Answer[]): Record<number, number> {
  const all: Record<number, number> = {}
  for (const { status } of answers) all[status] = (all[status] ?? 0) + 1
  return all
}

test('of fifty tasks at once as many begin as the budget has room for, and each is charged once', async () => {
  const plan = { credits_per_hour: { small: 0, medium: 0, large: 0 } }
  const { id, api_key } = (await berth.control('POST', '/accounts', { budget_cap: 1, plan })).body
  const headers = { authorization: `Bearer ${api_key}` }
  const server = (await berth.call('POST', '/servers', {}, headers)).body.id
  await berth.control('PATCH', `/accounts/${id}`, { credits_used: 0.55 })
  const answers = await times(50, () =>
    berth.call('POST', `/servers/${server}/tasks`, { goal: 'run: true' }, headers),
  )
  expect(statuses(answers)).toEqual({ 201: 5, 402: 45 })
  const { accounts } = (await berth.control('GET', '/accounts')).body
  expect(accounts.find((one: { id: string }) => one.id === id).credits_used).toBe(1.05)
  const { events } = (await berth.control('GET', `/events?account_id=${id}`)).body
  const quotas = events.map(({ event }: { event: string }) => event)
  expect(quotas.filter((event: string) => event.startsWith('quota')).sort()).toEqual([
    'quota.cap_reached',
    'quota.threshold',
  ])
  await berth.control('DELETE', `/accounts/${id}`)
})

test('of thirty projects at once a server gets as many as the plan allows, each with a slug of its own', async () => {
  const server = await berth.server()
  const answers = await times(30, () => berth.call('POST', `/servers/${server}/projects`, { name: 'same' }))
  expect(statuses(answers)).toEqual({ 201: 3, 403: 27 })
  const slugs = answers.flatMap(({ body }) => body.slug ?? [])
  expect(new Set(slugs).size).toBe(3)
  await berth.call('DELETE', `/servers/${server}`)
})

/** An app whose responses and WebSockets do not end by themselves. */
const APP = `Bun.serve({
  port: process.env.PORT,
  idleTimeout: 0,
  fetch(request, server) {
    if (server.upgrade(request)) return
    if (new URL(request.url).pathname !== '/stream') return new Response('app')
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue('begun') }))
  },
  websocket: { open: (socket) => socket.send('begun'), message() {} },
})`

describe('connections that are open', () => {
  test.each([
    ['turns private', 'PATCH', { visibility: 'private' }],
    ['is deleted', 'DELETE', undefined],
  ])('end when their project %s, at its port and at its name', async (_what, method, body) => {
    const server = await berth.server()
    const source = await archiveOf({ 'app.js': APP, 'berth.json': '{"start":"bun app.js"}' })
    const project = await ready(berth, server, { name: 'open', visibility: 'public', source })
    const main = new URL(berth.info.base_url)
    const places = [
      { origin: new URL(project.url ?? '').origin, headers: {} },
      { origin: main.origin, headers: { host: `${project.slug}.localhost:${main.port}` } },
    ]
    const ends = await Promise.all(
      places.flatMap(({ origin, headers }) => [streamOf(origin, headers), socketOf(origin, headers)]),
    )
    expect((await berth.call(method, `/projects/${project.id}`, body)).status).toBe(200)
    expect(await Promise.all(ends.map(({ end }) => end))).toEqual(['cut', 'cut', 'cut', 'cut'])
    await berth.call('DELETE', `/servers/${server}`)
  })
})

/** Opens a stream. Resolves when it has begun, with how it will end. */
async function streamOf(origin: string, headers: Record<string, string>): Promise<{ end: Promise<string> }> {
  const reader = (await fetch(`${origin}/stream`, { headers })).body?.getReader()
  const first = await reader?.read()
  expect(new TextDecoder().decode(first?.value)).toBe('begun')
  const rest = async (): Promise<string> => ((await reader?.read())?.done ? 'complete' : 'more')
  return { end: rest().catch(() => 'cut') }
}

/** Opens a WebSocket. Resolves when it has begun, with how it will end. */
async function socketOf(origin: string, headers: Record<string, string>): Promise<{ end: Promise<string> }> {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  // The types know no headers, which Bun takes.
  const socket = new WebSocket(origin.replace('http', 'ws'), { headers } as never)
  socket.onmessage = () => begun.resolve()
  socket.onclose = ({ code }) => {
    begun.reject(new Error(`closed with ${code}`))
    ended.resolve(code === 1000 ? 'complete' : 'cut')
  }
  await begun.promise
  return { end: ended.promise }
}

test('a server that is deleted amid everything leaves nothing, and everybody has a response', async () => {
  const before = await shownServers()
  const server = await berth.server()
  const source = await archiveOf({ 'app.js': APP, 'berth.json': '{"start":"bun app.js"}' })
  const project = await ready(berth, server, { name: 'gone', visibility: 'public', source })
  const at = `/servers/${server}`
  const stream = await berth.fetch(`${at}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ command: 'echo begun; sleep 600' }),
  })
  const reader = stream.body?.getReader()
  await reader?.read()
  const under: [request: Promise<{ status: number }>, ...statuses: number[]][] = [
    // What began before the end has a result; what comes after it finds no server.
    [berth.call('POST', `${at}/exec`, { command: 'sleep 600' }), 200, 404],
    [berth.call('POST', `${at}/terminals`, {}), 201, 404],
    [berth.call('POST', `${at}/tasks`, { goal: 'run: sleep 600' }), 201, 404],
    [berth.call('POST', `${at}/builds`, { goal: 'run: sleep 600' }), 201, 404],
    [berth.call('POST', `${at}/projects`, { name: 'late', visibility: 'public', source }), 201, 404],
    [berth.call('POST', `/projects/${project.id}/restart`), 202, 404],
    [berth.call('PUT', `${at}/files`, { path: 'late', content: 'late' }), 201, 404],
    [berth.control('POST', '/snapshots', { name: 'amid' }), 201],
  ]
  const ends = await times(2, () => berth.call('DELETE', at))
  expect(statuses(ends)).toEqual({ 200: 1, 404: 1 })
  const responses = await Promise.all(
    under.map(async ([request, ...allowed]) => ({ status: (await request).status, allowed })),
  )
  expect(responses.filter(({ status, allowed }) => !allowed.includes(status))).toEqual([])
  let last = await reader?.read()
  while (last?.done === false) last = await reader?.read()
  expect(await shownServers()).toEqual(before)
  expect(readdirSync(join(berth.dataDir, 'servers'))).not.toContain(server)
  expect((await berth.call('GET', '/projects')).body.projects).toEqual([])
  expect((await berth.control('POST', '/snapshots/amid/restore', {})).status).toBe(200)
})

async function shownServers(): Promise<string[]> {
  const { servers } = (await berth.call('GET', '/servers')).body
  return servers.map(({ id }: { id: string }) => id).sort()
}
