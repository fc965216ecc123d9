import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'

setDefaultTimeout(30_000)

const FROZEN = { freeze: '2030-01-31T22:00:00.000Z' }

const usageOf = async (berth: TestBerth, query = '') => (await berth.call('GET', `/usage${query}`)).body.usage

test('credits are shown by day, server and kind, and add up to those of the month', async () => {
  await using berth = await testBerth({ flags: FROZEN })
  const small = await berth.server({ task: 'shop' })
  await berth.control('POST', '/clock', { advance: '90m' })
  const large = await berth.server({ tier: 'large' })
  await berth.control('POST', '/clock', { advance: '1h' })
  const goal = { goal: 'complete: Done.' }
  const { task_id: task } = (await berth.call('POST', `/servers/${small}/tasks`, goal)).body
  await berth.control('GET', `/wait?task=${task}&until=completed`)
  await berth.call('DELETE', `/servers/${large}`)
  const none = { tasks: 0, builds: 0 }
  const usage = await usageOf(berth)
  expect(usage).toEqual({
    month: '2030-02',
    month_ends_at: '2030-03-01T00:00:00.000Z',
    credits_used: 2.6,
    budget_cap: 1000,
    credits_remaining: 997.4,
    credits_unattributed: 0,
    known_since: '2030-01-31',
    days: [
      {
        day: '2030-01-31',
        credits: 4,
        servers: [
          { server_id: small, task: 'shop', credits: 2, running: 2, ...none },
          { server_id: large, task: null, credits: 2, running: 2, ...none },
        ],
      },
      {
        day: '2030-02-01',
        credits: 2.6,
        servers: [
          { server_id: large, task: null, credits: 2, running: 2, ...none },
          { server_id: small, task: 'shop', credits: 0.6, running: 0.5, tasks: 0.1, builds: 0 },
        ],
      },
    ],
  })
  expect((await usageOf(berth, '?days=1')).days).toEqual(usage.days.slice(1))
  await berth.call('POST', `/servers/${small}/actions`, { action: 'stop' })
  await berth.control('POST', '/clock', { advance: '48h' })
  const days = (await usageOf(berth)).days.slice(2)
  expect(days).toEqual([
    { day: '2030-02-02', credits: 0, servers: [] },
    { day: '2030-02-03', credits: 0, servers: [] },
  ])
})

test('what is not known by day is said to be so: a sum that was set, and use before days were kept', async () => {
  await using berth = await testBerth({ flags: FROZEN })
  const { accounts } = (await berth.control('GET', '/accounts')).body
  await berth.control('PATCH', `/accounts/${accounts[0].id}`, { credits_used: 900 })
  expect(await usageOf(berth)).toMatchObject({ credits_used: 900, credits_unattributed: 900 })
  await berth.stop()
  using database = new Database(join(berth.dataDir, 'berth.db'))
  database.run('UPDATE accounts SET created_at = 0')
  database.run("INSERT INTO daily_usage SELECT id, '', '', '', 0 FROM accounts")
  database.close()
  await using again = await testBerth({
    dataDir: berth.dataDir,
    flags: { freeze: '2030-02-03T00:00:00.000Z' },
  })
  const usage = await usageOf(again)
  expect(usage).toMatchObject({ known_since: '2030-02-03' })
  expect(usage.days).toEqual([{ day: '2030-02-03', credits: 0, servers: [] }])
})

test('an account sees its own credits, and a key of a part of it none', async () => {
  await using berth = await testBerth({ flags: FROZEN })
  const server = await berth.server()
  await berth.control('POST', '/clock', { advance: '1h' })
  const { api_key: key } = (await berth.control('POST', '/accounts', { label: 'other' })).body
  const other = await berth.call('GET', '/usage', undefined, { authorization: `Bearer ${key}` })
  expect(other.body.usage).toMatchObject({ credits_used: 0, days: [{ credits: 0, servers: [] }] })
  const wishes = { label: 'one', allowed_server_ids: [server] }
  const scoped = (await berth.call('POST', '/keys', wishes)).body.key
  const refused = await berth.call('GET', '/usage', undefined, { authorization: `Bearer ${scoped}` })
  expect([refused.status, refused.body.error]).toEqual([403, 'forbidden'])
  for (const days of ['0', '401', 'x']) {
    expect([days, (await berth.call('GET', `/usage?days=${days}`)).status]).toEqual([days, 400])
  }
})

test('days go with a snapshot, and a reset begins them anew', async () => {
  await using berth = await testBerth({ flags: FROZEN })
  const server = await berth.server()
  await berth.control('POST', '/clock', { advance: '1h' })
  await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
  const before = (await usageOf(berth)).days
  expect(before).toMatchObject([{ credits: 1 }])
  await berth.control('POST', '/snapshots', { name: 'one' })
  await berth.control('POST', '/reset')
  expect((await usageOf(berth)).days).toMatchObject([{ credits: 0 }])
  await berth.control('POST', '/snapshots/one/restore')
  expect((await usageOf(berth)).days).toEqual(before)
})
