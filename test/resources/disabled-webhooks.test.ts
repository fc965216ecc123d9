import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { receiver, replyWith } from '../support/receiver.ts'

const berth = await berthForTests({ flags: { 'allow-local-webhooks': true, isolation: 'none' } })

interface ShownDelivery {
  id: string
  status: string
  next_attempt_at: string | null
  attempts: { at: string; status: number | null }[]
}

const subscribe = async (url: string): Promise<string> =>
  (await berth.call('POST', '/webhooks', { url, events: ['tuning.started'] })).body.id
const emit = async () => (await berth.control('POST', '/events', { event: 'tuning.started' })).body.id
const shown = async (id: string) =>
  (await berth.call('GET', '/webhooks')).body.webhooks.find((one: { id: string }) => one.id === id)
/** The deliveries of a webhook, oldest first. */
const deliveriesOf = async (id: string): Promise<ShownDelivery[]> =>
  (await berth.control('GET', `/deliveries?webhook_id=${id}`)).body.deliveries.reverse()
const settled = (id: string, ready: (deliveries: ShownDelivery[]) => boolean) =>
  until(async () => ready(await deliveriesOf(id)), `the deliveries of ${id} are settled`)
const enable = (id: string, headers = {}) => berth.call('POST', `/webhooks/${id}/enable`, undefined, headers)

/** A webhook whose receiver answered with 410, after a delivery that waits for its retry. */
async function disabled(url: string, reply: (status: number) => void) {
  const id = await subscribe(url)
  reply(500)
  await emit()
  await settled(id, ([one]) => one?.attempts.length === 1)
  reply(410)
  await emit()
  await settled(id, (all) => all.length === 2 && all.every(({ status }) => status === 'disabled'))
  return id
}

describe('a receiver that answers with 410', () => {
  test('switches its webhook off: queued deliveries end, and events meanwhile make none', async () => {
    await using target = await receiver()
    const reply = (status: number): void => {
      target.reply = replyWith(status)
    }
    const id = await disabled(target.url, reply)
    expect((await shown(id)).disabled_at).toMatch(/^\d{4}-.*Z$/)
    const [waiting, gone] = await deliveriesOf(id)
    expect([waiting?.next_attempt_at, gone?.next_attempt_at]).toEqual([null, null])
    expect(gone?.attempts.map(({ status }) => status)).toEqual([410])
    const { body } = await berth.control('GET', '/events?event=webhook.disabled&limit=1')
    expect(body.events[0].data).toEqual({ webhook_id: id, url: target.url, delivery_id: gone?.id })
    const { webhooks } = (await berth.control('GET', '/deliveries/summary')).body
    expect(webhooks.find((one: { webhook_id: string }) => one.webhook_id === id)).toMatchObject({
      pending: 0,
      failed: 0,
      disabled: 2,
      success_rate: null,
    })

    reply(200)
    const event = await emit()
    await berth.control('POST', '/clock', { advance: '20h' })
    expect((await berth.control('GET', `/wait?deliveries=${event}`)).body.deliveries).toEqual([])
    expect(await deliveriesOf(id)).toHaveLength(2)
    expect(target.received).toHaveLength(2)
    await berth.call('DELETE', `/webhooks/${id}`)
  })

  test('gets events again after its webhook is switched on, and none of those that it missed', async () => {
    await using target = await receiver()
    const reply = (status: number): void => {
      target.reply = replyWith(status)
    }
    const id = await disabled(target.url, reply)
    reply(200)
    await emit()
    const { status, body } = await enable(id)
    expect([status, body]).toEqual([200, { webhook: { ...(await shown(id)), disabled_at: null } }])
    // On a webhook that is on it changes nothing.
    const first = await emit()
    expect(await enable(id)).toMatchObject({ status: 200, body })
    await target.got(3)
    expect(target.received.at(-1)?.headers['webhook-id']).toBe(first)
    await settled(id, (all) => all.length === 3 && all[2]?.status === 'delivered')
    await berth.call('DELETE', `/webhooks/${id}`)
  })

  test('is not tried again by hand while its webhook is off', async () => {
    await using target = await receiver()
    const reply = (status: number): void => {
      target.reply = replyWith(status)
    }
    const id = await disabled(target.url, reply)
    const [waiting] = await deliveriesOf(id)
    const refused = await berth.control('POST', `/deliveries/${waiting?.id}/retry`)
    expect([refused.status, refused.body]).toEqual([
      400,
      {
        error: 'bad_request',
        message: `The webhook "${id}" is disabled, because its receiver answered with 410. Switch it on with POST /webhooks/${id}/enable, then try again.`,
      },
    ])
    reply(200)
    await enable(id)
    expect((await berth.control('POST', `/deliveries/${waiting?.id}/retry`)).status).toBe(202)
    await settled(id, ([one]) => one?.status === 'delivered')
    await berth.call('DELETE', `/webhooks/${id}`)
  })

  test('may also be a fault that a test has set', async () => {
    const id = await subscribe(`${berth.info.base_url}/_berth/inbox/gone`)
    const effect = { respond: { status: 410 } }
    await berth.control('POST', '/faults', { match: { deliveries: { webhook_id: id } }, effect })
    const event = await emit()
    const [{ id: delivery }] = (await berth.control('GET', `/wait?deliveries=${event}`)).body.deliveries
    const ended = await berth.control('GET', `/wait?delivery=${delivery}`)
    expect(ended.body.delivery.status).toBe('disabled')
    expect((await shown(id)).disabled_at).not.toBeNull()
    await berth.control('DELETE', '/faults')
    await berth.call('DELETE', `/webhooks/${id}`)
  })
})

test('only a key of the whole account switches a webhook on, and only one of the account', async () => {
  const server = await berth.server()
  const id = await subscribe(`${berth.info.base_url}/_berth/inbox/keys`)
  const { key } = (await berth.call('POST', '/keys', { label: 'x', allowed_server_ids: [server] })).body
  expect(await enable(id, { authorization: `Bearer ${key}` })).toMatchObject({ status: 403 })
  const other = (await berth.control('POST', '/accounts', { label: 'other' })).body
  expect(await enable(id, { authorization: `Bearer ${other.api_key}` })).toMatchObject({ status: 404 })
  expect(await enable('wh_none')).toMatchObject({ status: 404, body: { error: 'not_found' } })
  await berth.call('DELETE', `/webhooks/${id}`)
})

test('nobody subscribes to webhook.disabled, or emits it', async () => {
  const url = 'https://8.8.8.8/'
  const events = ['webhook.disabled']
  expect((await berth.call('POST', '/webhooks', { url, events })).status).toBe(400)
  expect((await berth.control('POST', '/events', { event: events[0] })).status).toBe(400)
})

describe('a receiver that asks for a pause', () => {
  test.each([429, 503])(
    'with %d is tried again when it asks for it, and the attempt counts',
    async (status) => {
      await berth.control('POST', '/clock', { freeze: true })
      await using target = await receiver({ reply: replyWith(status, '', { 'Retry-After': '77' }) })
      const id = await subscribe(target.url)
      await emit()
      await settled(id, ([one]) => one?.attempts.length === 1)
      const waitOf = ({ next_attempt_at: next, attempts }: ShownDelivery) =>
        Date.parse(next ?? '') - Date.parse(attempts.at(-1)?.at ?? '')
      const [first] = await deliveriesOf(id)
      expect(first && waitOf(first)).toBe(77_000)
      // A date counts by berth's clock.
      const date = new Date(Date.parse(first?.next_attempt_at ?? '') + 600_000).toUTCString()
      target.reply = replyWith(status, '', { 'Retry-After': date })
      await berth.control('POST', '/clock', { advance: '77s' })
      await settled(id, ([one]) => one?.attempts.length === 2)
      const [second] = await deliveriesOf(id)
      expect(second && Math.abs(waitOf(second) - 600_000)).toBeLessThan(1_000)
      // The schedule goes on with the third wait.
      target.reply = replyWith(500, '', { 'Retry-After': '77' })
      await berth.control('POST', '/clock', { advance: '10m' })
      await settled(id, ([one]) => one?.attempts.length === 3)
      const [third] = await deliveriesOf(id)
      expect(third && waitOf(third)).toBeWithin(27 * 60_000, 30 * 60_000 + 1)
      // The eighth attempt is the last, whatever the receiver asks for.
      target.reply = replyWith(status, '', { 'Retry-After': '5' })
      // The wait, of which up to a tenth is left out at random, and the four pauses after it.
      await berth.control('POST', '/clock', { advance: '31m' })
      await settled(id, ([one]) => one?.status === 'failed')
      const [failed] = await deliveriesOf(id)
      const times = failed?.attempts.slice(3).map(({ at }) => Date.parse(at)) ?? []
      expect(times.map((at) => at - (times[0] ?? 0))).toEqual([0, 5_000, 10_000, 15_000, 20_000])
      await berth.control('POST', '/clock', { freeze: false })
      await berth.call('DELETE', `/webhooks/${id}`)
    },
  )
})
