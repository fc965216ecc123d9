import { expect, test } from 'bun:test'
import { LiveUsage } from '../../src/resources/usage/live.ts'
import { berthForTests } from '../support/berth.ts'
import { TestChanges } from '../support/change-stream.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests()

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const ALL = '/usage/servers'

test('what running servers use is sent again and again, and once more when one stops or is gone', async () => {
  const [one, other] = [await berth.server(), await berth.server({ tier: 'medium' })]
  const mine = bearer(berth.info.api_key)
  using bySocket = await TestChanges.socket(berth, mine, ALL)
  using byEvents = await TestChanges.events(berth, {}, ALL)
  using ofOne = await TestChanges.socket(berth, mine, `/servers/${one}/usage`)
  for (const changes of [bySocket, byEvents]) {
    await changes.next('usage', ({ id }) => id === one)
    const { value } = await changes.next('usage', ({ id }) => id === other)
    expect(value).toMatchObject({ server_id: other, status: 'running', cpus: 2, processes: 0 })
  }
  await berth.exec(one, 'sleep 1260 >/dev/null 2>&1 &')
  await ofOne.next('usage', ({ value }) => value?.processes === 1)
  await berth.call('POST', `/servers/${one}/actions`, { action: 'stop' })
  const rest = await bySocket.next('usage', ({ value }) => value?.status === 'sleeping')
  expect(rest).toMatchObject({ id: one, value: { memory_bytes: 0, processes: 0, cpu_percent: 0 } })
  await berth.call('DELETE', `/servers/${other}`)
  await byEvents.next('usage', ({ id, value }) => id === other && value === null)
  expect(new Set(ofOne.messages.map(({ id }) => id ?? 'ready'))).toEqual(new Set(['ready', one]))
  await berth.call('DELETE', `/servers/${one}`)
})

test('a reader gets what its credential reaches, until that ends; other accounts get nothing of it', async () => {
  const [seen, hidden] = [await berth.server(), await berth.server()]
  const { body: key } = await berth.call('POST', '/keys', { label: 'x', allowed_server_ids: [seen] })
  const { body: account } = await berth.control('POST', '/accounts', { label: 'Second' })
  using everything = await TestChanges.socket(berth, bearer(berth.info.api_key), ALL)
  using scoped = await TestChanges.socket(berth, bearer(key.key), ALL)
  using elsewhere = await TestChanges.socket(berth, bearer(account.api_key), ALL)
  expect(TestChanges.events(berth, bearer(key.key), `/servers/${hidden}/usage`)).rejects.toThrow('not_found')
  await everything.next('usage', ({ id }) => id === hidden)
  await berth.call('POST', `/servers/${hidden}/actions`, { action: 'stop' })
  await everything.next('usage', ({ id, value }) => id === hidden && value?.status === 'sleeping')
  await scoped.next('usage')
  await berth.call('DELETE', `/keys/${key.id}`)
  expect((await scoped.closed).code).toBe(4002)
  expect(scoped.messages.filter(({ id }) => id === hidden)).toEqual([])
  expect(elsewhere.messages.map(({ type }) => type)).toEqual(['ready'])
})

test('berth measures once for all readers, and not at all without any', async () => {
  let measured = 0
  const usage = { server_id: 'srv_1' } as never
  const measuring = {
    running: async () => {
      measured += 1
      return new Map([['srv_1', usage]])
    },
    atRest: () => undefined,
  }
  const live = new LiveUsage(measuring, { error: () => {} } as never)
  const caller = { accountId: 'acct_1', credentialId: 'key_1', servers: null, projects: null }
  const told = [0, 0]
  const ends = told.map((_, at) =>
    live.sourceOf(caller).watch(() => {
      told[at] = (told[at] ?? 0) + 1
    }),
  )
  await until(async () => told.every((count) => count >= 2), 'both readers are told twice')
  expect(told).toEqual([measured, measured])
  for (const end of ends) end()
  const before = measured
  // More than two intervals.
  await Bun.sleep(5_000)
  expect(measured).toBe(before)
})
