import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { MovedClock } from '../support/clock.ts'
import { processesOf, until } from '../support/processes.ts'

const MINUTE = 60_000
const clock = new MovedClock()
const berth = await berthForTests({ flags: { 'idle-timeout': '15m' }, dependencies: { clock } })

const statusOf = async (id: string) => {
  const { body } = await berth.call('GET', '/servers')
  return body.servers.find((server: { id: string }) => server.id === id).status
}

describe('idle timeout', () => {
  test('a server that nobody uses goes to sleep, and not before', async () => {
    const id = await berth.server()
    await clock.advance(14 * MINUTE)
    expect(await statusOf(id)).toBe('running')
    await clock.advance(2 * MINUTE)
    await until(async () => (await statusOf(id)) === 'sleeping', 'it sleeps')
  })

  test('a command and a file call begin the time anew', async () => {
    const id = await berth.server()
    await clock.advance(14 * MINUTE)
    await berth.exec(id, 'true')
    await clock.advance(14 * MINUTE)
    await berth.call('GET', `/servers/${id}/files`)
    await clock.advance(14 * MINUTE)
    expect(await statusOf(id)).toBe('running')
    await clock.advance(2 * MINUTE)
    await until(async () => (await statusOf(id)) === 'sleeping', 'it sleeps')
  })

  test('a command under way keeps it awake, however long', async () => {
    const id = await berth.server()
    const running = berth.exec(id, 'while [ ! -e done ]; do sleep 0.02; done; echo over')
    await until(() => processesOf(berth.dataDir).some((line) => line.includes('-e done')), 'it runs')
    await clock.advance(60 * MINUTE)
    expect(await statusOf(id)).toBe('running')
    await berth.call('PUT', `/servers/${id}/files`, { path: 'done', content: '' })
    expect((await running).stdout).toBe('over\n')
    await clock.advance(16 * MINUTE)
    await until(async () => (await statusOf(id)) === 'sleeping', 'it sleeps')
  })

  test('a stopped and a deleted server leave no timer', async () => {
    const before = clock.pending
    const stopped = await berth.server()
    const deleted = await berth.server()
    await berth.call('POST', `/servers/${stopped}/actions`, { action: 'stop' })
    await berth.call('DELETE', `/servers/${deleted}`)
    expect(clock.pending).toBe(before)
  })
})
