import { afterAll, expect, test } from 'bun:test'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { TestChanges } from '../../support/change-stream.ts'
import { Visitor } from '../../support/visitor.ts'

const berth = await berthForTests({ flags: { 'allow-local-webhooks': true } })

// Whatever a test is sent is as the document says.
afterAll(async () => expect(await TestChanges.undocumented('ControlChange')).toEqual([]))

const PATH = '/_berth/changes'
const admin = () => ({ authorization: `Bearer ${berth.info.admin_token}` })
const socket = () => TestChanges.socket(berth, admin(), PATH)
const events = () => TestChanges.events(berth, admin(), PATH)

test('each request is sent as the list shows it when its response is made, by socket and as event', async () => {
  using bySocket = await socket()
  using byEvents = await events()
  const server = await berth.server({ task: 'shown' })
  const [created] = (await berth.control('GET', '/requests?operation=servers.create')).body.requests
  expect(created.response.body).toMatchObject({ id: server })
  for (const changes of [bySocket, byEvents]) {
    const sent = await changes.next('request', ({ value }) => value.operation === 'servers.create')
    expect(sent).toEqual({ type: 'request', id: created.id, value: created })
  }
  await berth.control('DELETE', '/requests')
  expect(await bySocket.next('request', ({ id }) => id === '*')).toEqual({
    type: 'request',
    id: '*',
    value: null,
  })
})

test('requests are sent without bodies if asked so, by socket and as event', async () => {
  const path = `${PATH}?bodies=false`
  using bySocket = await TestChanges.socket(berth, admin(), path)
  using byEvents = await TestChanges.events(berth, admin(), path)
  await berth.server({ task: 'without bodies' })
  const query = '?operation=servers.create&bodies=false'
  const [created] = (await berth.control('GET', `/requests${query}`)).body.requests
  expect(created).not.toContainAnyKeys(['request', 'response'])
  for (const changes of [bySocket, byEvents]) expect((await changes.next('request')).value).toEqual(created)
})

test('events, deliveries and inboxes are sent as they come and change', async () => {
  using changes = await socket()
  const url = `${berth.info.base_url}/_berth/inbox/live?respond=500,200`
  const { body: webhook } = await berth.call('POST', '/webhooks', { url, events: ['server.created'] })
  const server = await berth.server()
  const event = await changes.next('event', ({ value }) => value.event === 'server.created')
  const { body } = await berth.control('GET', '/events?event=server.created')
  expect(event).toEqual({ type: 'event', id: body.events[0].id, value: body.events[0] })
  const failed = await changes.next('delivery', ({ value }) => value?.attempts.length === 1)
  expect(failed.value).toMatchObject({ event_id: event.id, status: 'pending', webhook_id: webhook.id })
  expect(failed.value).toEqual((await berth.control('GET', `/deliveries/${failed.id}`)).body)
  const inbox = await changes.next('inbox')
  expect(inbox).toEqual({ type: 'inbox', id: 'live', value: expect.objectContaining({ count: 1 }) })
  await berth.control('POST', `/deliveries/${failed.id}/retry`)
  await changes.next('delivery', ({ id, value }) => id === failed.id && value?.status === 'delivered')
  await changes.next('inbox', ({ value }) => value?.count === 2)
  await berth.control('DELETE', '/inbox/live')
  await changes.next('inbox', ({ id, value }) => id === 'live' && value === null)
  await berth.call('DELETE', `/webhooks/${webhook.id}`)
  await berth.call('DELETE', `/servers/${server}`)
})

test('faults inside a server are sent when one begins, applies and ends', async () => {
  using changes = await socket()
  const server = await berth.server()
  const kind = 'slow_exec'
  const told = (state: (faults: { kind: string; times_left?: number }[] | undefined) => boolean) =>
    changes.next('server_fault', ({ id, value }) => id === server && state(value?.faults))
  await berth.control('POST', `/servers/${server}/fault`, { kind, delay_ms: 1, times: 2 })
  const begun = await told((faults) => faults?.[0]?.times_left === 2)
  await berth.exec(server, 'true')
  await told((faults) => faults?.[0]?.times_left === 1)
  expect(begun.value).toEqual({
    faults: [{ server_id: server, kind, active: true, delay_ms: 1, times: 2, times_left: 2 }],
  })
  await berth.exec(server, 'true')
  await told((faults) => faults === undefined)
  await berth.control('POST', `/servers/${server}/fault`, { kind: 'hang' })
  await told((faults) => faults?.[0]?.kind === 'hang')
  changes.messages.length = 0
  await berth.control('DELETE', `/servers/${server}/fault`)
  await told((faults) => faults === undefined)
  await berth.call('DELETE', `/servers/${server}`)
})

test('faults are sent with live counts, and null once they are removed', async () => {
  using changes = await socket()
  const wish = { match: { operation: 'servers.list' }, effect: { error: { status: 503 } } }
  const { body: fault, status } = await berth.control('POST', '/faults', wish)
  expect(status).toBe(201)
  expect(await changes.next('fault')).toEqual({ type: 'fault', id: fault.id, value: fault })
  await berth.call('GET', '/servers')
  const struck = await changes.next('fault', ({ value }) => value?.hits === 1)
  expect(struck.value).toEqual({ ...fault, matched: 1, hits: 1 })
  await berth.control('DELETE', `/faults/${fault.id}`)
  await changes.next('fault', ({ id, value }) => id === fault.id && value === null)
  const { body: other } = await berth.control('POST', '/faults', wish)
  await berth.control('DELETE', '/faults')
  await changes.next('fault', ({ id, value }) => id === other.id && value === null)
})

test('the clock, snapshots, scenarios and accounts of all are sent when they change', async () => {
  using changes = await socket()
  await berth.control('PATCH', '/local-webhooks', { allowed: true })
  expect(await changes.next('local_webhooks')).toEqual({
    type: 'local_webhooks',
    id: 'local-webhooks',
    value: { allowed: true },
  })
  await berth.control('POST', '/clock', { freeze: true, advance: '2h' })
  const { value } = await changes.next('clock', (sent) => sent.value.frozen)
  const { body: clock } = await berth.control('GET', '/clock')
  // The machine's time goes on, from which the offset is counted.
  expect(value).toEqual({ ...clock, offset_ms: expect.any(Number) })
  await berth.control('POST', '/clock', { reset: true })
  await changes.next('clock', (sent) => !sent.value.frozen)

  const { body: snapshot } = await berth.control('POST', '/snapshots', { name: 'kept' })
  expect(await changes.next('snapshot')).toEqual({ type: 'snapshot', id: 'kept', value: snapshot })
  await berth.control('DELETE', '/snapshots/kept')
  await changes.next('snapshot', ({ id, value: gone }) => id === 'kept' && gone === null)

  const scenarios = [{ match: 'live', steps: [{ complete: 'x' }] }]
  const set = await berth.control('PUT', '/scenarios', { scenarios })
  expect(await changes.next('scenario')).toEqual({
    type: 'scenario',
    id: 'scenarios',
    value: set.body,
  })
  await berth.control('DELETE', '/scenarios')
  await changes.next('scenario', (sent) => sent.value.scenarios.length === 0)

  const { body: account } = await berth.control('POST', '/accounts', { label: 'live' })
  const shown = await changes.next('account', ({ id }) => id === account.id)
  expect(shown.value).toMatchObject({ label: 'live', servers: 0 })
  await berth.control('DELETE', `/accounts/${account.id}`)
  await changes.next('account', ({ id, value: gone }) => id === account.id && gone === null)
})

test('only the admin token and the session of the instance open it', async () => {
  const { api_key } = berth.info
  expect((await berth.fetch(PATH, { headers: { authorization: `Bearer ${api_key}` } })).status).toBe(401)
  const json = { accept: 'application/json' }
  expect((await berth.fetch(PATH, { headers: { ...admin(), ...json } })).status).toBe(426)
  const visitor = await Visitor.of(berth)
  const headers = { cookie: visitor.cookie, origin: new URL(berth.info.base_url).origin }
  using changes = await TestChanges.socket(berth, headers, PATH)
  await expect(
    TestChanges.socket(berth, { ...headers, origin: 'https://evil.example' }, PATH),
  ).rejects.toThrow()
  await visitor.submit('/signout')
  expect((await changes.closed).code).toBe(4001)
})

test('a reset and a restore end it with a message and a code of their own, and it opens again', async () => {
  await berth.control('POST', '/snapshots', { name: 'state' })
  for (const path of ['/reset', '/snapshots/state/restore']) {
    using bySocket = await socket()
    using byEvents = await events()
    using ofAccount = await TestChanges.socket(berth)
    expect((await berth.control('POST', path)).status).toBe(200)
    expect((await bySocket.closed).code).toBe(4007)
    expect((await ofAccount.closed).code).toBe(4005)
    await byEvents.closed
    for (const { messages } of [bySocket, byEvents])
      expect(messages.at(-1)).toEqual({ type: 'reset' } as (typeof messages)[number])
    using after = await socket()
    await berth.control('POST', '/clock', { freeze: false })
    await after.next('clock')
  }
})

test('a stop of berth ends it with another code', async () => {
  await using other = await testBerth()
  using changes = await TestChanges.socket(other, { authorization: `Bearer ${other.info.admin_token}` }, PATH)
  using ofAccount = await TestChanges.socket(other)
  await other.stop()
  expect((await changes.closed).code).toBe(4005)
  expect((await ofAccount.closed).code).toBe(4005)
})
