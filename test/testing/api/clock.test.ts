import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'

let berth: TestBerth
beforeAll(async () => {
  berth = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z', 'idle-timeout': '15m' } })
})
afterAll(() => berth[Symbol.asyncDispose]())

const clock = (body?: object) => berth.control(body ? 'POST' : 'GET', '/clock', body)

test('time stands, and what falls due happens when it is moved', async () => {
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

test.each([
  [{}, 'must say what to do'],
  [{ reset: true, freeze: true }, '"reset" in the body stands alone'],
  [{ reset: false }, '"reset"'],
  [{ advance: '1h', set: '2040-01-01' }, 'exclude each other'],
  [{ advance: 'soon' }, '"advance" in the body: expected a duration'],
  [{ advance: '-1h' }, '"advance" in the body: expected a duration'],
  [{ advance: '9999999d' }, 'before the year 10000'],
  [{ set: 'Jan 1 2040' }, '"set" in the body: expected an ISO 8601 time'],
  [{ set: '2040-13-01' }, '"set" in the body: expected an ISO 8601 time'],
  [{ set: '2040-02-30' }, '"set" in the body: expected an ISO 8601 time'],
  [{ set: '1960-01-01' }, 'from 1970 on'],
  [{ freeze: 'yes' }, '"freeze"'],
  [{ stop: true }, '"stop" in the body is not a known field'],
  [{ freeze: false, advance: 'soon' }, '"advance"'],
])('%j is refused with a sentence and moves nothing', async (body, sentence) => {
  const { now, frozen } = (await clock()).body
  const { status, body: answer } = await clock(body)
  expect([status, answer.error]).toEqual([400, 'bad_request'])
  expect(answer.message).toContain(sentence)
  expect((await clock()).body).toMatchObject({ now, frozen })
})

test('a path that is none is answered with those that there are', async () => {
  const { status, body } = await berth.control('GET', '/clocks')
  expect([status, body.error]).toEqual([404, 'not_found'])
  expect(body.message).toContain('/_berth/clock, ')
  expect((await berth.control('DELETE', '/clock')).headers.get('allow')).toContain('POST')
})

test('it takes the admin token, no API key', async () => {
  expect((await berth.call('GET', '/_berth/clock')).status).toBe(401)
  expect((await berth.call('POST', '/_berth/clock', { advance: '1h' })).status).toBe(401)
})
