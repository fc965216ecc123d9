import { describe, expect, test } from 'bun:test'
import { berthForTests, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { type Received, type Receiver, receiver, replyWith, verify } from '../support/receiver.ts'

const berth = await berthForTests({ flags: { 'allow-local-webhooks': true, isolation: 'none' } })

interface Subscription extends AsyncDisposable {
  id: string
  secret: string
}

/** A webhook that is gone after the test. */
async function subscribe(url: string, events?: string[]): Promise<Subscription> {
  const { status, body } = await berth.call('POST', '/webhooks', { url, events })
  expect(status).toBe(201)
  return {
    ...body,
    [Symbol.asyncDispose]: async () => void (await berth.call('DELETE', `/webhooks/${body.id}`)),
  }
}

const emit = async (event: string, data?: object) =>
  (await berth.control('POST', '/events', { event, data })).body

const deliveriesOf = async (webhook: { id: string }) =>
  (await berth.control('GET', `/deliveries?webhook_id=${webhook.id}`)).body.deliveries

/** The deliveries of a webhook, once `ready` holds for them. */
async function settled(
  webhook: { id: string },
  ready: (deliveries: { status: string; attempts: unknown[] }[]) => boolean,
) {
  await until(async () => ready(await deliveriesOf(webhook)), 'the deliveries are settled')
  return deliveriesOf(webhook)
}

const advance = (by: string) => berth.control('POST', '/clock', { advance: by })

/** Stops the clock for a test. */
async function stopClock(): Promise<AsyncDisposable> {
  await berth.control('POST', '/clock', { freeze: true })
  return {
    [Symbol.asyncDispose]: async () => void (await berth.control('POST', '/clock', { freeze: false })),
  }
}

const now = async () => Date.parse((await berth.control('GET', '/clock')).body.now)

describe('a delivery', () => {
  test('is what Standard Webhooks says, and verifies with its library', async () => {
    await using target = await receiver()
    await using webhook = await subscribe(target.url)
    const event = await emit('deployment.live', { server_id: 'srv_1', url: 'https://x.example/' })
    const [got] = (await target.got(1)) as [Received]
    // A copy: the matcher writes its wildcards into what it is given.
    expect({ ...got.headers }).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^berth\/\S+$/),
      'webhook-id': event.id,
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
    })
    expect(verify(webhook.secret, got)).toEqual({
      event: 'deployment.live',
      server_id: 'srv_1',
      url: 'https://x.example/',
      created_at: event.created_at,
    })
    expect(() => verify(webhook.secret, { ...got, body: `${got.body} ` })).toThrow('signature')
  })

  test('shows the headers of the response, bounded, and says how it went for each webhook', async () => {
    const summaryOf = async ({ id }: { id: string }) =>
      (await berth.control('GET', '/deliveries/summary')).body.webhooks.find(
        ({ webhook_id }: { webhook_id: string }) => webhook_id === id,
      )
    await using target = await receiver({
      reply: replyWith(204, '', { 'X-Receiver': 'mine', 'X-Long': 'y'.repeat(3_000) }),
    })
    await using webhook = await subscribe(`${target.url}?summed`, ['tuning.started'])
    expect(await summaryOf(webhook)).toEqual({
      webhook_id: webhook.id,
      account_id: expect.stringMatching(/^acct_/),
      url: `${target.url}?summed`,
      pending: 0,
      delivered: 0,
      failed: 0,
      disabled: 0,
      success_rate: null,
      attempts: 0,
      failed_attempts: 0,
      last_attempt_at: null,
      last_error: null,
    })
    await emit('tuning.started')
    const [delivered] = await settled(webhook, ([one]) => one?.status === 'delivered')
    const { headers } = delivered.attempts[0].response
    expect([headers['x-receiver'], headers['x-long'].length]).toEqual(['mine', 1_024])
    target.reply = replyWith(500)
    await emit('tuning.started')
    await settled(webhook, ([one]) => one?.attempts.length === 1)
    expect(await summaryOf(webhook)).toMatchObject({
      pending: 1,
      delivered: 1,
      failed: 0,
      success_rate: 1,
      attempts: 2,
      failed_attempts: 1,
      last_error: 'The receiver answered with 500.',
    })
  })

  test('verifies wherever the clock has been moved to', async () => {
    await using target = await receiver()
    await using webhook = await subscribe(target.url)
    await advance('400d')
    const { created_at } = await emit('tuning.started')
    const [got] = (await target.got(1)) as [Received]
    expect(verify(webhook.secret, got)).toMatchObject({ created_at })
    await berth.control('POST', '/clock', { reset: true })
  })

  test('comes for what really happens, and for what was subscribed to alone', async () => {
    await using target = await receiver()
    await using all = await subscribe(`${target.url}?all`)
    await using _some = await subscribe(`${target.url}?some`, ['server.deleted'])
    const id = await berth.server()
    await berth.call('DELETE', `/servers/${id}`)
    await target.got(3)
    const of = (path: string) =>
      target.received.filter((one) => one.path === path).map(({ payload }) => payload.event)
    expect(of('/hook?all')).toEqual(['server.created', 'server.deleted'])
    expect(of('/hook?some')).toEqual(['server.deleted'])
    expect(target.received[0]?.payload).toMatchObject({ server_id: id, tier: 'small', region: 'us-east' })
    expect((await deliveriesOf(all)).length).toBe(2)
  })

  test('does not come for what happened before the subscription', async () => {
    await emit('task.created')
    await using target = await receiver()
    await using _webhook = await subscribe(target.url)
    const event = await emit('task.completed')
    const [got] = (await target.got(1)) as [Received]
    expect(got.headers['webhook-id']).toBe(event.id)
  })

  test('comes in order, one at a time for a webhook', async () => {
    let [open, most] = [0, 0]
    await using target = await receiver({
      reply(response) {
        most = Math.max(most, ++open)
        setTimeout(() => {
          open -= 1
          response.end()
        }, 5)
      },
    })
    await using _webhook = await subscribe(target.url)
    const ids: string[] = []
    for (let n = 0; n < 30; n++) ids.push((await emit('tuning.started', { n })).id)
    await target.got(30)
    expect(target.received.map(({ headers }) => headers['webhook-id'] ?? '')).toEqual(ids)
    expect(most).toBe(1)
  })

  test('comes once and in order to each of many webhooks', async () => {
    const targets = await Promise.all(Array.from({ length: 10 }, () => receiver()))
    const hooks = await Promise.all(targets.map(({ url }) => subscribe(url)))
    await Promise.all(Array.from({ length: 100 }, (_, n) => emit('tuning.started', { n })))
    const expected = (await berth.control('GET', '/events?limit=100')).body.events
      .map(({ data }: { data: { n: number } }) => data.n)
      .reverse()
    for (const target of targets) {
      await target.got(100)
      expect(target.received.map(({ payload }) => payload.n)).toEqual(expected)
    }
    for (const hook of hooks) {
      const deliveries = await settled(hook, (all) => all.every(({ status }) => status === 'delivered'))
      expect(deliveries.map(({ attempts }: { attempts: unknown[] }) => attempts.length)).toEqual(
        Array(100).fill(1),
      )
      await hook[Symbol.asyncDispose]()
    }
    for (const target of targets) await target[Symbol.asyncDispose]()
    expect(berth.log()).not.toContain('ERROR')
  })

  test('is kept with what was sent and what came back, of that the first KiB', async () => {
    await using target = await receiver({ reply: replyWith(201, 'x'.repeat(5_000)) })
    await using webhook = await subscribe(target.url)
    const event = await emit('quota.threshold')
    const [delivery] = await settled(webhook, ([one]) => one?.status === 'delivered')
    const [got] = target.received as [Received]
    expect(delivery).toMatchObject({
      id: expect.stringMatching(/^dlv_[0-9a-z]{26}$/),
      webhook_id: webhook.id,
      event_id: event.id,
      event: 'quota.threshold',
      next_attempt_at: null,
    })
    expect(delivery.attempts).toEqual([
      {
        number: 1,
        at: expect.stringMatching(/Z$/),
        status: 201,
        ms: expect.any(Number),
        error: null,
        request: { headers: expect.objectContaining({ 'webhook-id': event.id }), body: got.body },
        response: {
          headers: expect.not.objectContaining({ date: expect.any(String) }),
          body: 'x'.repeat(1_024),
        },
      },
    ])
    for (const [name, value] of Object.entries(delivery.attempts[0].request.headers)) {
      expect(got.headers[name]).toBe(value as string)
    }
  })
})

/** How an answer fails, and what is kept of it. */
const FAILURES: [string, Receiver['reply'], object][] = [
  [
    '500',
    replyWith(500, 'oops'),
    {
      status: 500,
      error: 'The receiver answered with 500.',
      response: { headers: expect.anything(), body: 'oops' },
    },
  ],
  ['404', replyWith(404), { status: 404 }],
  [
    'a redirect, which is not followed',
    replyWith(302, '', { location: 'http://127.0.0.1:1/elsewhere' }),
    { status: 302, error: expect.stringContaining('Redirects are not followed') },
  ],
  ['a connection that is closed at once', (response) => void response.socket?.destroy(), { status: null }],
  [
    'an answer that is broken off',
    (response) => {
      response.writeHead(200, { 'content-length': 100 }).write('some', () => response.socket?.destroy())
    },
    { status: null, error: expect.stringContaining('not reached') },
  ],
]

describe('an attempt that fails', () => {
  test.each(FAILURES)('by %s is kept and made again with the same id', async (_name, reply, kept) => {
    await using target = await receiver({ reply })
    await using webhook = await subscribe(target.url)
    const event = await emit('server.stopped')
    const [failed] = await settled(webhook, ([one]) => one?.attempts.length === 1)
    expect(failed.status).toBe('pending')
    expect(failed.attempts[0].error).toBeString()
    expect(failed.attempts[0]).toMatchObject(kept)
    target.reply = replyWith(204)
    await advance('5s')
    const [delivery] = await deliveriesOf(webhook)
    expect(delivery).toMatchObject({ status: 'delivered', next_attempt_at: null })
    expect(delivery.attempts.length).toBe(2)
    const [first, second] = target.received as [Received, Received]
    expect(second.headers['webhook-id']).toBe(event.id)
    expect(second.body).toBe(first.body)
    expect(verify(webhook.secret, second)).toMatchObject({ event: 'server.stopped' })
  })

  test('is made again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, and then given up', async () => {
    await using target = await receiver({ reply: replyWith(503) })
    await using webhook = await subscribe(target.url)
    // What the machine takes for a step is not to come to the time that is left.
    await using _standing = await stopClock()
    await emit('task.failed')
    await settled(webhook, ([one]) => one?.attempts.length === 1)
    let made = 1
    for (const wait of ['5s', '5m', '30m', '2h', '5h', '10h', '14h']) {
      const ms =
        { s: 1_000, m: 60_000, h: 3_600_000 }[wait.at(-1) as 's' | 'm' | 'h'] * Number.parseInt(wait, 10)
      const [waiting] = await deliveriesOf(webhook)
      const left = Date.parse(waiting.next_attempt_at) - Date.parse(waiting.attempts.at(-1).at)
      // Jitter makes it up to a tenth shorter.
      expect(left).toBeGreaterThanOrEqual(ms * 0.9 - 1)
      expect(left).toBeLessThanOrEqual(ms)
      await advance(`${Date.parse(waiting.next_attempt_at) - (await now()) - 1_000}ms`)
      expect(target.received.length).toBe(made)
      await advance('1s')
      expect(target.received.length).toBe(++made)
    }
    const [delivery] = await deliveriesOf(webhook)
    expect(delivery).toMatchObject({ status: 'failed', next_attempt_at: null })
    expect(delivery.attempts.map(({ number }: { number: number }) => number)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8,
    ])
    await advance('100h')
    expect(target.received.length).toBe(8)

    target.reply = replyWith(200)
    const { status, body } = await berth.control('POST', `/deliveries/${delivery.id}/retry`)
    expect([status, body.id]).toEqual([202, delivery.id])
    const [again] = await settled(webhook, ([one]) => one?.status === 'delivered')
    expect(again.attempts.length).toBe(9)
  })

  test('holds up no later event of the same webhook', async () => {
    await using target = await receiver({
      reply: (response, { payload }) =>
        void response
          .writeHead(payload.event === 'tuning.started' && target.received.length === 1 ? 500 : 200)
          .end(),
    })
    await using webhook = await subscribe(target.url)
    const first = await emit('tuning.started')
    const later = await emit('tuning.completed')
    await target.got(2)
    expect(target.received.map(({ headers }) => headers['webhook-id'])).toEqual([first.id, later.id])
    await settled(webhook, (all) => all.every(({ attempts }) => attempts.length === 1))
    await advance('5s')
    expect(target.received[2]?.headers['webhook-id']).toBe(first.id)
  })

  test('is made, and made again, at its own moment of a move of the clock, which waits for it', async () => {
    const { id, api_key } = (await berth.control('POST', '/accounts', { budget_cap: 10 })).body
    const asAccount = { authorization: `Bearer ${api_key}` }
    const begun = (await berth.control('POST', '/clock', { freeze: true })).body.now
    await using target = await receiver()
    target.reply = (response) =>
      replyWith(target.received.length === 1 ? 503 : 200)(response, target.received[0] as Received)
    const wish = { url: target.url, events: ['quota.threshold'] }
    expect((await berth.call('POST', '/webhooks', wish, asAccount)).status).toBe(201)
    expect((await berth.call('POST', '/servers', {}, asAccount)).status).toBe(201)
    await berth.control('PATCH', `/accounts/${id}`, { credits_used: 7.5 })
    // The server takes a credit an hour: it is 8 of 10 in the middle.
    await advance('1h')
    expect(target.received.length).toBe(2)
    const { deliveries } = (await berth.control('GET', `/deliveries?account_id=${id}`)).body
    const after = (at: string) => Math.round((Date.parse(at) - Date.parse(begun)) / 60_000)
    expect(deliveries).toHaveLength(1)
    expect(deliveries[0].status).toBe('delivered')
    expect(deliveries[0].attempts.map(({ at }: { at: string }) => after(at))).toEqual([30, 30])
    await berth.control('DELETE', `/accounts/${id}`)
    await berth.control('POST', '/clock', { freeze: false })
  })

  test('waits as long as before where the clock is set back, and new events do not wait at all', async () => {
    await using target = await receiver({ reply: replyWith(500) })
    await using webhook = await subscribe(target.url)
    await emit('task.created')
    await settled(webhook, ([one]) => one?.attempts.length === 1)
    await berth.control('POST', '/clock', { set: new Date((await now()) - 86_400_000).toISOString() })
    target.reply = replyWith(200)
    await emit('task.completed')
    await target.got(2)
    await advance('5s')
    expect(target.received.map(({ payload }) => payload.event)).toEqual([
      'task.created',
      'task.completed',
      'task.created',
    ])
  })
})

test('deleting a webhook ends its attempt under way, and sends nothing more', async () => {
  await using target = await receiver({ reply: () => {} })
  const webhook = await subscribe(target.url)
  for (let n = 0; n < 5; n++) await emit('tuning.started')
  await target.got(1)
  expect(target.open).toBe(1)
  await berth.call('DELETE', `/webhooks/${webhook.id}`)
  await until(() => target.open === 0, 'the connection is closed')
  await emit('tuning.started')
  await advance('100h')
  expect(target.received.length).toBe(1)
  expect(await deliveriesOf(webhook)).toEqual([])
  expect(berth.log()).not.toContain('ERROR')
})

test('receivers that never answer hold up nobody else, however many they are', async () => {
  const silent = await Promise.all(Array.from({ length: 100 }, () => receiver({ reply: () => {} })))
  await using quick = await receiver()
  const hooks = await Promise.all(silent.map(({ url }) => subscribe(url, ['tuning.started'])))
  hooks.push(await subscribe(quick.url, ['tuning.started']))
  for (let n = 0; n < 20; n++) await emit('tuning.started', { n })
  await quick.got(20, 13_000)
  expect(quick.received.map(({ payload }) => payload.n)).toEqual(Array.from({ length: 20 }, (_, n) => n))
  for (const hook of hooks) await hook[Symbol.asyncDispose]()
  for (const one of silent) await one[Symbol.asyncDispose]()
})

test('an attempt under way at the stop is made again at the next start, with the same id', async () => {
  await using target = await receiver({ reply: () => {} })
  await using first = await testBerth({ flags: { 'allow-local-webhooks': true, isolation: 'none' } })
  await first.call('POST', '/webhooks', { url: target.url })
  const { body: event } = await first.control('POST', '/events', { event: 'quota.cap_reached' })
  await target.got(1)
  const began = performance.now()
  await first.stop()
  expect(performance.now() - began).toBeLessThan(10_000)
  target.reply = replyWith(200)
  await using _second = await testBerth({
    flags: { 'allow-local-webhooks': true, isolation: 'none' },
    dataDir: first.dataDir,
  })
  await target.got(2)
  expect(target.received.map(({ headers }) => headers['webhook-id'])).toEqual([event.id, event.id])
})

test('a webhook of before does not lead to loopback when berth runs without the option', async () => {
  await using target = await receiver()
  await using first = await testBerth({ flags: { 'allow-local-webhooks': true, isolation: 'none' } })
  await first.call('POST', '/webhooks', { url: target.url })
  await first.stop()
  await using second = await testBerth({ flags: { isolation: 'none' }, dataDir: first.dataDir })
  await second.control('POST', '/events', { event: 'task.created' })
  const read = async () => (await second.control('GET', '/deliveries')).body.deliveries[0]
  await until(async () => (await read())?.attempts.length === 1, 'the attempt is made')
  expect((await read()).attempts[0].error).toContain('refused')
  expect(target.received).toEqual([])
})
