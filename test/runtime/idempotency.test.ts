import { expect, test } from 'bun:test'
import { testBerth } from '../support/berth.ts'
import { MovedClock } from '../support/clock.ts'

test('an Idempotency-Key is remembered for 24 hours, and then free for another request', async () => {
  const clock = new MovedClock()
  await using berth = await testBerth({ dependencies: { clock } })
  const headers = { 'idempotency-key': 'daily' }
  const first = await berth.call('POST', '/servers', { task: 'first' }, headers)
  await clock.advance(23 * 3_600_000)
  const again = await berth.call('POST', '/servers', { task: 'first' }, headers)
  expect(again.body).toEqual(first.body)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  await clock.advance(2 * 3_600_000)
  const other = await berth.call('POST', '/servers', { task: 'other' }, headers)
  expect(other.status).toBe(201)
  expect(other.body.id).not.toBe(first.body.id)
})
