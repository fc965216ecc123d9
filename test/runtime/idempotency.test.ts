import { Database } from 'bun:sqlite'
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

test('the responses that are kept for a key have a limit; those beyond it are neither repeated nor executed again', async () => {
  await using berth = await testBerth({ flags: { isolation: 'none' } })
  const server = await berth.server()
  const run = (key: string, command: string) =>
    berth.call('POST', `/servers/${server}/exec`, { command }, { 'idempotency-key': key })
  const small = 'echo small | tee -a small'
  const large = 'echo >> large; head -c 9000000 /dev/zero | tr "\\0" x'
  await run('small', small)
  for (const key of ['1', '2', '3', '4', '5']) expect((await run(key, large)).status).toBe(200)
  expect((await run('5', large)).headers.get('idempotent-replayed')).toBe('true')
  for (const [key, command] of [
    ['small', small],
    ['1', large],
  ] as const) {
    const again = await run(key, command)
    expect([again.status, again.body.message]).toEqual([400, expect.stringContaining('was not kept')])
  }
  // As JSON, each NUL has six characters.
  const huge = 'echo >> huge; head -c 6000000 /dev/zero'
  expect((await run('huge', huge)).status).toBe(200)
  expect((await run('huge', huge)).status).toBe(400)
  expect((await berth.exec(server, 'wc -l < small; wc -l < large; wc -l < huge')).stdout).toBe('1\n5\n1\n')
  using database = new Database(`${berth.dataDir}/berth.db`, { readonly: true })
  const { kept } = database.query('SELECT sum(length(body)) AS kept FROM idempotency').get() as {
    kept: number
  }
  expect(kept).toBeGreaterThan(9_000_000)
  expect(kept).toBeLessThanOrEqual(32 * 1024 * 1024)
})

test('responses that have expired leave room for as many others', async () => {
  const clock = new MovedClock()
  await using berth = await testBerth({ flags: { isolation: 'none' }, dependencies: { clock } })
  const server = await berth.server()
  const run = (key: string, megabytes: number) =>
    berth.call(
      'POST',
      `/servers/${server}/exec`,
      { command: `head -c ${megabytes}000000 /dev/zero | tr "\\0" x` },
      { 'idempotency-key': key },
    )
  await run('old', 9)
  await clock.advance(20 * 3_600_000)
  await run('a', 9)
  await run('b', 9)
  await clock.advance(5 * 3_600_000)
  await run('c', 5)
  await run('d', 5)
  for (const key of ['a', 'b']) expect((await run(key, 9)).headers.get('idempotent-replayed')).toBe('true')
})
