import { expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { MovedClock } from '../support/clock.ts'

test('last_used_at is kept to the minute: a busy key is written once a minute', async () => {
  const clock = new MovedClock()
  await using berth = await testBerth({ dependencies: { clock } })
  const { id, key } = (await berth.call('POST', '/keys', { label: 'busy' })).body
  const lastUsed = async () => {
    const { keys } = (await berth.call('GET', '/keys')).body
    return keys.find((one: { id: string }) => one.id === id).last_used_at
  }
  const use = () => berth.call('GET', '/servers', undefined, { authorization: `Bearer ${key}` })
  const iso = () => new Date(clock.now()).toISOString()

  expect(await lastUsed()).toBeNull()
  await use()
  const first = iso()
  expect(await lastUsed()).toBe(first)
  await clock.advance(59_999)
  await use()
  expect(await lastUsed()).toBe(first)
  await clock.advance(1)
  await use()
  const second = iso()
  expect(await lastUsed()).toBe(second)

  await berth.stop()
  await clock.advance(1_000)
  await using again = await testBerth({ dataDir: berth.dataDir, dependencies: { clock } })
  const { keys } = (await again.call('GET', '/keys')).body
  expect(keys.find((one: { id: string }) => one.id === id).last_used_at).toBe(second)
})

test('keys that a seed repeats after a restart are passed over', async () => {
  const flags = { 'rng-seed': '7', freeze: '2030-01-01T00:00:00Z' }
  await using berth = await testBerth({ flags })
  const made = [berth.info.api_key, (await berth.call('POST', '/keys', { label: 'x' })).body.key]
  await berth.stop()
  await using again = await testBerth({ flags, dataDir: berth.dataDir })
  const { status, body } = await again.call('POST', '/keys', { label: 'y' })
  expect(status).toBe(201)
  expect(made).not.toContain(body.key)
})

test('a server or project that a key could reach before it was deleted has no successor of the same id', async () => {
  const flags = { 'rng-seed': '7', freeze: '2030-01-01T00:00:00Z', isolation: 'none' }
  await using berth = await testBerth({ flags })
  const project = async (where: TestBerth, serverId: string): Promise<string> =>
    (await where.call('POST', `/servers/${serverId}/projects`, { name: 'one' })).body.id
  const [kept, lost] = [await berth.server(), await berth.server()]
  const lostProject = await project(berth, kept)
  const scope = { allowed_server_ids: [kept, lost], allowed_project_ids: [lostProject] }
  const { key } = (await berth.call('POST', '/keys', { label: 'scoped', ...scope })).body
  await berth.call('DELETE', `/projects/${lostProject}`)
  await berth.call('DELETE', `/servers/${lost}`)
  await berth.stop()
  await using again = await testBerth({ flags, dataDir: berth.dataDir })
  const [server, made] = [await again.server(), await project(again, kept)]
  const reached = async (path: string): Promise<string> =>
    JSON.stringify((await again.call('GET', path, undefined, { authorization: `Bearer ${key}` })).body)
  expect(await reached('/servers')).not.toContain(server)
  expect(await reached('/projects')).not.toContain(made)
})

test('a clock that was set back dates uses by what it says now', async () => {
  const clock = new MovedClock(Date.UTC(2030, 0, 2))
  await using berth = await testBerth({ dependencies: { clock } })
  await berth.call('GET', '/servers')
  await clock.set(Date.UTC(2030, 0, 1))
  expect((await berth.call('GET', '/keys')).body.keys[0].last_used_at).toBe('2030-01-01T00:00:00.000Z')
})
