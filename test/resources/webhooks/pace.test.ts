import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { KEPT_DELIVERIES } from '../../../src/resources/webhooks/queue.ts'
import { requestedWait, retryWait } from '../../../src/resources/webhooks/retry.ts'
import { testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { receiver, replyWith } from '../../support/receiver.ts'

const flags = { 'allow-local-webhooks': true, isolation: 'none' }

test('a receiver that keeps failing is sent little, in order, until it succeeds', async () => {
  await using target = await receiver({ reply: replyWith(500) })
  await using berth = await testBerth({ flags })
  await berth.call('POST', '/webhooks', { url: target.url })
  const emit = (n: number) => berth.control('POST', '/events', { event: 'tuning.started', data: { n } })
  for (let n = 0; n < 30; n++) await emit(n)
  await target.got(12)
  const [first, last] = [target.received[6]?.at ?? 0, target.received[11]?.at ?? 0]
  // Five pauses of 100 ms; a timer may come a little early.
  expect(last - first).toBeGreaterThan(450)
  target.reply = replyWith(200)
  await target.got(30)
  // Without a pause between any two, however many of them a busy machine makes wait as long.
  const gaps = target.received.slice(15).map(({ at }, n) => at - (target.received[14 + n]?.at ?? 0))
  expect(Math.min(...gaps)).toBeLessThan(90)
  expect(target.received.map(({ payload }) => payload.n)).toEqual(Array.from({ length: 30 }, (_, n) => n))
})

test('moving the clock waits for retries, those of a paced receiver too', async () => {
  await using target = await receiver({ reply: replyWith(500) })
  await using berth = await testBerth({ flags })
  await berth.call('POST', '/webhooks', { url: target.url })
  for (let n = 0; n < 8; n++) await berth.control('POST', '/events', { event: 'tuning.started', data: { n } })
  await target.got(8)
  await until(
    async () =>
      (await berth.control('GET', '/deliveries')).body.deliveries.every(
        ({ attempts }: { attempts: unknown[] }) => attempts.length === 1,
      ),
    'all were attempted',
  )
  await berth.control('POST', '/clock', { advance: '5s' })
  expect(target.received.length).toBe(16)
})

test('of what is delivered the newest is kept', async () => {
  await using target = await receiver()
  await using berth = await testBerth({ flags })
  const { body: webhook } = await berth.call('POST', '/webhooks', { url: target.url })
  {
    using database = new Database(join(berth.dataDir, 'berth.db'), { strict: true })
    const account = database.query<{ id: string }, []>('SELECT id FROM accounts').get()?.id ?? ''
    database.transaction(() => {
      for (let n = 0; n < KEPT_DELIVERIES + 100; n++) {
        database.run(
          `INSERT INTO events (seq, id, account_id, event, data, created_at) VALUES (?, ?, ?, 'task.created', '{}', 0)`,
          [n + 1, `evt_${n}`, account],
        )
        database.run(
          `INSERT INTO deliveries (id, webhook_id, event_seq, status, attempts, created_at) VALUES (?, ?, ?, 'delivered', 1, 0)`,
          [`dlv_${n}`, webhook.id, n + 1],
        )
      }
      database.run('UPDATE fan_out SET seq = (SELECT max(seq) FROM events)')
    })()
  }
  await berth.control('POST', '/events', { event: 'task.failed' })
  await target.got(1)
  const count = async () => {
    using database = new Database(join(berth.dataDir, 'berth.db'), { readonly: true })
    return database.query<{ n: number }, []>('SELECT count(*) AS n FROM deliveries').get()?.n
  }
  await until(async () => (await count()) === KEPT_DELIVERIES, 'the old ones are gone')
  const { deliveries } = (await berth.control('GET', `/deliveries?limit=${KEPT_DELIVERIES}`)).body
  expect(deliveries[0].event).toBe('task.failed')
  expect(deliveries.at(-1).id).toBe('dlv_101')
})

test('the wait before a retry is its entry, up to a tenth less, and none after the eighth attempt', () => {
  const bytes = (value: number) => ({ bytes: (count: number) => new Uint8Array(count).fill(value) })
  expect([1, 2, 3, 4, 5, 6, 7, 8].map((attempts) => retryWait(attempts, bytes(0)))).toEqual([
    5_000,
    300_000,
    1_800_000,
    7_200_000,
    18_000_000,
    36_000_000,
    50_400_000,
    null,
  ])
  expect(retryWait(1, bytes(255))).toBe(4_500)
})

describe('the wait that a receiver asks for', () => {
  const NOW = Date.parse('2031-05-07T08:00:00Z')

  test.each<[string, number | null]>([
    ['7', 7_000],
    ['0', 1_000],
    ['1', 1_000],
    ['3600', 3_600_000],
    ['3601', 3_600_000],
    ['99999999999999999999', 3_600_000],
    [' 120 ', 120_000],
    ['Wed, 07 May 2031 08:02:00 GMT', 120_000],
    ['Wednesday, 07-May-31 08:02:00 GMT', 120_000],
    ['Wed May  7 08:02:00 2031', 120_000],
    ['Wed, 07 May 2031 07:00:00 GMT', 1_000],
    ['Thu, 08 May 2031 08:00:00 GMT', 3_600_000],
    ['1.5', null],
    ['-5', null],
    ['soon', null],
    ['', null],
    ['2031-05-07T08:02:00Z', null],
    ['Wed, 99 Foo 2031 08:02:00 GMT', null],
  ])('by "%s" is %p ms', (value, ms) => {
    for (const status of [429, 503]) expect(requestedWait(status, value, NOW)).toBe(ms)
  })

  test('counts with 429 and 503 only', () => {
    for (const status of [null, 200, 301, 400, 410, 500, 502])
      expect(requestedWait(status, '7', NOW)).toBeNull()
    expect(requestedWait(429, undefined, NOW)).toBeNull()
  })
})
