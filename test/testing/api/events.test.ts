import { describe, expect, test } from 'bun:test'
import { EVENT_NAMES } from '../../../src/resources/events/names.ts'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { readEvents } from '../../support/events.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })

const emit = (body: unknown) => berth.control('POST', '/events', body)
const list = async (query = '') => (await berth.control('GET', `/events${query}`)).body.events

describe('POST /_berth/events', () => {
  test('emits any of the fifteen, with data of its own or that of the documents', async () => {
    for (const event of EVENT_NAMES) {
      const { status, body } = await emit({ event })
      expect(status).toBe(201)
      expect(body).toMatchObject({ event, data: expect.any(Object) })
    }
    const { body } = await emit({ event: 'deployment.live', data: { url: 'https://x.example/' } })
    expect(body).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
      event: 'deployment.live',
      account_id: expect.stringMatching(/^acct_/),
      data: { url: 'https://x.example/' },
      request_id: null,
      created_at: expect.stringMatching(/Z$/),
    })
    expect((await emit({ event: 'deployment.live' })).body.data).toEqual({
      server_id: expect.stringMatching(/^srv_/),
      url: expect.stringMatching(/^http/),
    })
  })
})

describe('GET /_berth/events', () => {
  test('lists newest first, by event, account, position and number', async () => {
    const first = (await emit({ event: 'tuning.started', data: { n: 1 } })).body
    const second = (await emit({ event: 'tuning.completed', data: { n: 2 } })).body
    const third = (await emit({ event: 'tuning.started', data: { n: 3 } })).body
    expect((await list()).slice(0, 3)).toEqual([third, second, first])
    expect((await list('?event=tuning.started')).slice(0, 2)).toEqual([third, first])
    expect(await list('?limit=1')).toEqual([third])
    expect(await list(`?after=${first.id}`)).toEqual([third, second])
    expect(await list('?account_id=acct_none')).toEqual([])
  })

  test.each(['?limit=0', '?limit=x', '?event=none', '?after=evt_none', '?follow=maybe', '?what=1'])(
    'refuses %s',
    async (query) => {
      expect((await berth.control('GET', `/events${query}`)).status).toBe(400)
    },
  )

  test('streams those to come, or all since one that is named', async () => {
    const seen = (await emit({ event: 'task.created' })).body
    const between = (await emit({ event: 'task.completed' })).body
    const headers = { authorization: `Bearer ${berth.info.admin_token}` }
    const response = await berth.fetch(`/_berth/events?follow=true&after=${seen.id}&limit=3`, { headers })
    const sse = await berth.fetch('/_berth/events?event=task.failed&limit=1', {
      headers: { ...headers, accept: 'text/event-stream' },
    })
    const later = (await emit({ event: 'task.failed' })).body
    const id = await berth.server()
    const got = []
    for await (const event of readEvents(response)) got.push(event)
    expect(got.map(({ event }) => event)).toEqual(['task.completed', 'task.failed', 'server.created'])
    expect(got.slice(0, 2).map(({ data }) => data)).toEqual([between, later])
    expect(got[2]?.data.data.server_id).toBe(id)
    for await (const { data } of readEvents(sse)) expect(data).toEqual(later)
  })

  test('a stream does not hold up the end of berth', async () => {
    await using other = await testBerth({ flags: { isolation: 'none' } })
    const headers = { authorization: `Bearer ${other.info.admin_token}` }
    const response = await other.fetch('/_berth/events?follow=true', { headers })
    await other.stop()
    await response.text().catch(() => '')
    expect(other.log()).not.toContain('cut off')
  })

  test('takes no API key', async () => {
    expect((await berth.call('GET', '/_berth/events')).status).toBe(401)
    expect((await berth.call('POST', '/_berth/events', { event: 'task.created' })).status).toBe(401)
    expect((await berth.call('GET', '/_berth/deliveries')).status).toBe(401)
  })
})

describe('deliveries', () => {
  test.each(['?status=lost', '?event=task.lost', '?event=webhook.disabled', '?limit=0', '?what=1'])(
    'a list refuses %s',
    async (query) => {
      expect((await berth.control('GET', `/deliveries${query}`)).status).toBe(400)
    },
  )

  test('a retry of none is 404', async () => {
    const { status, body } = await berth.control('POST', '/deliveries/dlv_none/retry')
    expect([status, body.error]).toEqual([404, 'not_found'])
  })

  test('are listed by webhook, event, its name and status, alone and together', async () => {
    const url = 'https://hooks.berth.invalid/'
    const webhook = (await berth.call('POST', '/webhooks', { url, events: ['quota.threshold'] })).body
    const event = (await emit({ event: 'quota.threshold' })).body
    const ids = async (query: string) =>
      (await berth.control('GET', `/deliveries${query}`)).body.deliveries.map((one: { id: string }) => one.id)
    const [id] = await ids(`?webhook_id=${webhook.id}`)
    expect(id).toMatch(/^dlv_/)
    expect(await ids(`?event_id=${event.id}`)).toEqual([id])
    expect(await ids('?status=pending&limit=1')).toEqual([id])
    const all = `?webhook_id=${webhook.id}&status=pending`
    expect(await ids(`${all}&event=quota.threshold`)).toEqual([id])
    expect(await ids(`${all}&event=task.created`)).toEqual([])
    expect(await ids(`?webhook_id=${webhook.id}&status=delivered`)).toEqual([])
    expect(await ids('?event_id=evt_none')).toEqual([])
  })
})
