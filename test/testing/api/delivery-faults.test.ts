import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { type Receiver, receiver } from '../../support/receiver.ts'

let berth: TestBerth
let hook: Receiver
let webhook: string
let other: string
beforeAll(async () => {
  berth = await testBerth({ flags: { isolation: 'none', 'allow-local-webhooks': true } })
  hook = await receiver()
  webhook = (await berth.call('POST', '/webhooks', { url: hook.url })).body.id
  other = (await berth.call('POST', '/webhooks', { url: `${hook.url}other` })).body.id
})
afterAll(async () => {
  await berth?.[Symbol.asyncDispose]()
  await hook?.[Symbol.asyncDispose]()
})
beforeEach(() => berth.control('DELETE', '/faults'))

const fault = async (deliveries: object, effect: object, rest: object = {}) =>
  (await berth.control('POST', '/faults', { match: { deliveries }, effect, ...rest })).body

/** Emits an event; returns what became of its first attempt, by webhook. */
async function emitted(event = 'task.created') {
  const { body } = await berth.control('POST', '/events', { event })
  await berth.control('GET', `/wait?deliveries=${body.id}`)
  const { deliveries } = (await berth.control('GET', `/deliveries?event_id=${body.id}`)).body
  const of = (id: string) => deliveries.find((one: { webhook_id: string }) => one.webhook_id === id)
  return { event: String(body.id), first: of(webhook), second: of(other) }
}

const received = (event: string): number =>
  hook.received.filter(({ headers }) => headers['webhook-id'] === event).length

test('a webhook fails as often as a fault says, whatever its receiver is, and no other does', async () => {
  const { id } = await fault({ webhook_id: webhook }, { error: { status: 503 } }, { times: 1 })
  const { event, first, second } = await emitted()
  expect([first.status, second.status]).toEqual(['pending', 'delivered'])
  expect(first.attempts[0].status).toBe(503)
  expect(first.attempts[0].error).toBe(
    `The fault ${id}, which a test has set, answered with 503 in place of the receiver.`,
  )
  expect(received(event)).toBe(1)
  expect((await berth.control('GET', '/faults')).body.faults).toMatchObject([{ id, matched: 1, hits: 1 }])
  await berth.control('POST', '/clock', { advance: '6s' })
  const { body } = await berth.control('GET', `/deliveries/${first.id}`)
  expect([body.status, body.attempts.length]).toEqual(['delivered', 2])
})

test('one kind of event alone, with nothing sent, or sent and the response lost', async () => {
  await fault({ event: 'task.failed' }, { disconnect: true })
  const cut = await emitted('task.failed')
  expect([cut.first.status, cut.first.attempts[0].status, received(cut.event)]).toEqual(['pending', null, 0])
  expect((await emitted('task.created')).first.status).toBe('delivered')
  await berth.control('DELETE', '/faults')
  await fault({ webhook_id: webhook }, { lose_response: true })
  const lost = await emitted()
  expect([lost.first.status, lost.second.status, received(lost.event)]).toEqual(['pending', 'delivered', 2])
})

test('a response of any kind counts as that of the receiver would, after a delay', async () => {
  await fault({}, { delay_ms: 60 })
  await fault({}, { respond: { status: 204 } })
  const { event, first } = await emitted()
  expect([first.status, first.attempts[0].status, received(event)]).toEqual(['delivered', 204, 0])
  expect(first.attempts[0].ms).toBeGreaterThan(50)
})

test('requests and deliveries meet no fault of each other', async () => {
  await fault({}, { error: { status: 503 } })
  expect((await berth.call('GET', '/servers')).status).toBe(200)
  await berth.control('DELETE', '/faults')
  await berth.control('POST', '/faults', { match: {}, effect: { error: { status: 503 } } })
  expect((await emitted()).first.status).toBe('delivered')
})
