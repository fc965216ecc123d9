import { expect, test } from 'bun:test'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'

const berth = await berthForTests({ flags: { freeze: '2030-01-01T00:00:00Z', 'idle-timeout': '15m' } })

const clock = (body?: object) => berth.control(body ? 'POST' : 'GET', '/clock', body)

test('time is frozen, and due timers run when it is moved', async () => {
  expect((await clock()).body).toMatchObject({ now: '2030-01-01T00:00:00.000Z', frozen: true })
  const id = await berth.server()
  const statusOf = async () => (await berth.call('GET', '/servers')).body.servers[0].status
  expect((await clock()).body.timers).toBeGreaterThan(0)
  expect((await clock({ advance: '14m' })).body).toMatchObject({ now: '2030-01-01T00:14:00.000Z' })
  expect(await statusOf()).toBe('running')
  expect((await clock({ advance: '1m' })).status).toBe(200)
  expect(await statusOf()).toBe('sleeping')
  await berth.call('DELETE', `/servers/${id}`)
})

test('what happens next is said by name, the soonest first', async () => {
  const one = await berth.server()
  await clock({ advance: '5m' })
  const two = await berth.server()
  const goal = 'wait: 90s\ncomplete: Done.'
  const { task_id: task } = (await berth.call('POST', `/servers/${two}/tasks`, { goal })).body
  const next = async () =>
    (await clock()).body.next.map(({ at, name, id }: Record<string, string>) => [at, name, id])
  const waits = async () => (await next()).some(([, name]: string[]) => name === 'task.continue')
  await until(waits, 'the task waits')
  const sleep = ['2030-01-01T00:30:00.000Z', 'server.sleep', one]
  expect((await next()).slice(0, 2)).toEqual([['2030-01-01T00:21:30.000Z', 'task.continue', task], sleep])
  expect((await next()).map(([, name]: string[]) => name)).toContain('account.budget')
  await clock({ advance: '90s' })
  expect((await next())[0]).toEqual(sleep)
  await clock({ advance: '15m' })
  expect((await berth.call('GET', `/servers/${one}`)).body.server.status).toBe('sleeping')
  for (const id of [one, two]) await berth.call('DELETE', `/servers/${id}`)
  expect(await next()).toEqual([])
  await clock({ reset: true })
})

test('the retry of a delivery is named by its delivery', async () => {
  await using local = await testBerth({
    flags: { freeze: '2030-01-01T00:00:00Z', 'allow-local-webhooks': true },
  })
  await local.call('POST', '/webhooks', { url: 'http://127.0.0.1:9/' })
  const { id } = (await local.control('POST', '/events', { event: 'task.created' })).body
  await local.control('GET', `/wait?deliveries=${id}`)
  const [delivery] = (await local.control('GET', '/deliveries')).body.deliveries
  const { next } = (await local.control('GET', '/clock')).body
  expect(next).toEqual([{ at: delivery.next_attempt_at, name: 'delivery.retry', id: delivery.id }])
})

test('a time in the future is reached, one in the past is set, and reset undoes both', async () => {
  expect((await clock({ set: '2031-05-01' })).body.now).toBe('2031-05-01T00:00:00.000Z')
  expect((await clock({ set: '2029-05-01T12:00:00+02:00' })).body.now).toBe('2029-05-01T10:00:00.000Z')
  expect((await clock({ reset: true })).body).toMatchObject({ now: '2030-01-01T00:00:00.000Z', frozen: true })
})

test('it can be let go and stopped, together with a move', async () => {
  expect((await clock({ set: '2031-01-01', freeze: false })).body.frozen).toBe(false)
  const first = Date.parse((await clock()).body.now)
  expect(first).toBeGreaterThanOrEqual(Date.UTC(2031, 0, 1))
  expect(first).toBeLessThan(Date.UTC(2031, 0, 1) + 60_000)
  expect((await clock({ freeze: true, set: '2032-01-01' })).body).toMatchObject({
    now: '2032-01-01T00:00:00.000Z',
    frozen: true,
  })
  await clock({ reset: true })
})

test('an unknown path is answered with the known ones', async () => {
  const { status, body } = await berth.control('GET', '/nowhere')
  expect([status, body.error]).toEqual([404, 'not_found'])
  expect(body.message).toContain('/_berth/clock, ')
  const near = await berth.control('GET', '/clocks')
  expect(near.body.message).toBe('There is nothing at /_berth/clocks. Did you mean GET /_berth/clock?')
  expect((await berth.control('DELETE', '/clock')).headers.get('allow')).toContain('POST')
})

test('it takes the admin token, no API key', async () => {
  expect((await berth.call('GET', '/_berth/clock')).status).toBe(401)
  expect((await berth.call('POST', '/_berth/clock', { advance: '1h' })).status).toBe(401)
})

test('the health shows it without a credential', async () => {
  const stands = async () => {
    const response = await fetch(`${berth.info.base_url}/_berth/health`)
    return ((await response.json()) as { clock: object }).clock
  }
  const { now, frozen, offset_ms: offset } = (await clock()).body
  expect(await stands()).toMatchObject({ now, frozen })
  expect(offset).not.toBe(0)
  const { body } = await clock({ advance: '1h' })
  expect(await stands()).toMatchObject({ now: body.now, frozen: true })
})
