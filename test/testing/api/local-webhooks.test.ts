import { expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { receiver } from '../../support/receiver.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })

const allow = (allowed: boolean) => berth.control('PATCH', '/local-webhooks', { allowed })

test('webhooks to this machine are refused at first, with both ways to admit them', async () => {
  expect((await berth.control('GET', '/local-webhooks')).body).toEqual({ allowed: false })
  for (const url of ['http://127.0.0.1:9/', 'https://localhost/']) {
    const { status, body } = await berth.call('POST', '/webhooks', { url })
    expect(status).toBe(400)
    expect(body.message).toContain('"berth webhooks local on"')
    expect(body.message).toContain('"berth serve --allow-local-webhooks"')
  }
})

test('the admin token alone admits them while berth runs, also over a reset, and takes it back', async () => {
  await using hook = await receiver()
  expect((await berth.call('PATCH', '/_berth/local-webhooks', { allowed: true })).status).toBe(401)
  expect((await allow(true)).body).toEqual({ allowed: true })
  await berth.control('POST', '/reset')
  expect((await berth.control('GET', '/local-webhooks')).body).toEqual({ allowed: true })
  expect((await berth.call('POST', '/webhooks', { url: hook.url })).status).toBe(201)
  // Nothing but this machine is admitted.
  expect((await berth.call('POST', '/webhooks', { url: 'http://10.0.0.1/' })).status).toBe(400)
  const deliver = async () => {
    const { body } = await berth.control('POST', '/events', { event: 'task.created' })
    await berth.control('GET', `/wait?deliveries=${body.id}`)
    return (await berth.control('GET', `/deliveries?event_id=${body.id}`)).body.deliveries[0]
  }
  expect((await deliver()).status).toBe('delivered')
  await allow(false)
  const { status, attempts } = await deliver()
  expect(status).toBe('pending')
  expect(attempts[0].error).toStartWith("The webhook's url is refused: it must begin with https://")
})
