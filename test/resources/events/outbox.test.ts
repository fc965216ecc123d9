import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { testBerth } from '../../support/berth.ts'

/** The events that a berth's database holds, oldest first. */
function eventsIn(dataDir: string): { event: string; data: Record<string, unknown> }[] {
  using database = new Database(join(dataDir, 'berth.db'), { readonly: true })
  const rows = database.query<{ event: string; data: string }, []>('SELECT * FROM events ORDER BY seq').all()
  return rows.map(({ event, data }) => ({ event, data: JSON.parse(data) }))
}

test('events of a server: created once, stopped for each stop that changes something, deleted', async () => {
  await using berth = await testBerth()
  const id = await berth.server({ tier: 'medium', region: 'eu-west' })
  const act = (action: string) => berth.call('POST', `/servers/${id}/actions`, { action })
  for (const action of ['start', 'stop', 'stop', 'start', 'restart']) await act(action)
  await berth.call('DELETE', `/servers/${id}`)

  const about = { server_id: id, tier: 'medium', region: 'eu-west' }
  const stopped = { event: 'server.stopped', data: { ...about, status: 'sleeping' } }
  expect(eventsIn(berth.dataDir)).toEqual([
    { event: 'server.created', data: { ...about, status: 'running' } },
    stopped,
    stopped,
    { event: 'server.deleted', data: about },
  ])
})

test('a refused request tells nothing', async () => {
  await using berth = await testBerth()
  await berth.call('POST', '/servers', { tier: 'huge' })
  await berth.call('DELETE', '/servers/srv_none')
  expect(eventsIn(berth.dataDir)).toEqual([])
})

test('the end of berth stops no server in the eyes of a receiver', async () => {
  await using first = await testBerth()
  await first.server()
  await first.stop()
  await using second = await testBerth({ dataDir: first.dataDir })
  expect(second.info.data_dir).toBe(first.dataDir)
  expect(eventsIn(first.dataDir).map(({ event }) => event)).toEqual(['server.created'])
})
