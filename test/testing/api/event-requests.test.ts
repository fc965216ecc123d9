import { expect, setDefaultTimeout, test } from 'bun:test'
import { testBerth } from '../../support/berth.ts'

setDefaultTimeout(30_000)

test('an event says which request caused it, also after that was responded to; what none caused says none', async () => {
  await using berth = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z', 'idle-timeout': '15m' } })
  const events = async () => (await berth.control('GET', '/events')).body.events
  const causeOf = async (name: string) =>
    (await events()).find(({ event }: { event: string }) => event === name)?.request_id
  const idOf = ({ headers }: { headers: Headers }) => headers.get('x-request-id')
  const created = await berth.call('POST', '/servers')
  const server = created.body.id
  expect(await causeOf('server.created')).toBe(idOf(created))
  const goal = { goal: 'wait: 1m\ncomplete: Done.' }
  const begun = await berth.call('POST', `/servers/${server}/tasks`, goal)
  expect(await causeOf('task.created')).toBe(idOf(begun))
  await Promise.all([berth.call('GET', '/servers'), berth.exec(server, 'true')])
  const isOver = async () => (await causeOf('task.completed')) !== undefined
  while (!(await isOver())) await berth.control('POST', '/clock', { advance: '1m' })
  expect(await causeOf('task.completed')).toBe(idOf(begun))
  const { requests } = (await berth.control('GET', '/requests')).body
  expect(requests.map(({ id }: { id: string }) => id)).toContain(await causeOf('task.completed'))
  await berth.control('POST', '/clock', { advance: '15m' })
  expect(await causeOf('server.stopped')).toBeNull()
  await berth.control('POST', '/events', { event: 'tuning.started' })
  expect(await causeOf('tuning.started')).toBeNull()
  const [first, second] = await Promise.all([
    berth.call('POST', '/servers', { task: 'one' }),
    berth.call('POST', '/servers', { task: 'two' }),
  ])
  for (const one of [first, second]) {
    const event = (await events()).find(({ data }: { data: object }) =>
      Bun.deepMatch({ server_id: one.body.id }, data),
    )
    expect(event.request_id).toBe(idOf(one))
  }
  await berth.control('POST', `/servers/${first.body.id}/fault`, { kind: 'crash' })
  const crashed = async () =>
    (await events()).find(
      ({ event, data }: { event: string; data: object }) =>
        event === 'server.stopped' && Bun.deepMatch({ server_id: first.body.id }, data),
    )
  while ((await crashed()) === undefined) await Bun.sleep(5)
  expect((await crashed()).request_id).toBeNull()
})
