import { beforeEach, describe, expect, test } from 'bun:test'
import { listenSecret, signatureHeaders } from '../../../src/resources/webhooks/signature.ts'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { readEvents } from '../../support/events.ts'

const berth = await berthForTests({ flags: { isolation: 'none', 'allow-local-webhooks': true } })
beforeEach(() => berth.control('DELETE', '/inbox'))

const urlOf = (name: string) => `${berth.info.base_url}/_berth/inbox/${name}`

/** Posts as anybody would: without a credential. */
const post = (
  name: string,
  body: NonNullable<RequestInit['body']> | null = '',
  headers: Record<string, string> = {},
) => fetch(urlOf(name), { method: 'POST', body, headers })

const read = async (name: string, query = '') =>
  (await berth.control('GET', `/inbox/${name}${query}`)).body.entries

const waitFor = async (query: string) => (await berth.control('GET', `/wait?${query}`)).body

describe('POST /_berth/inbox/{name}', () => {
  test('takes any body of anybody on this machine and keeps it as it came', async () => {
    const answer = await post('raw', 'not {json', { 'content-type': 'text/plain', 'x-tag': 'a' })
    const { id } = (await answer.json()) as { id: string }
    expect([answer.status, id]).toEqual([200, expect.stringMatching(/^msg_[0-9a-z]{26}$/)])
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
    await post('raw', '{"a":[1,null]}', { 'content-type': 'application/x-www-form-urlencoded' })
    await post('raw?what=1&token=x', new Uint8Array([0xff, 0, 0x7b]))
    await post('raw', null)
    const deep = '['.repeat(50_000)
    await post('raw', deep, { 'content-type': 'application/json' })
    const entries = await read('raw')
    expect(entries.map((one: { body: string }) => one.body)).toEqual([
      deep,
      '',
      Buffer.from([0xff, 0, 0x7b]).toString('base64'),
      '{"a":[1,null]}',
      'not {json',
    ])
    expect(entries.at(-1)).toEqual({
      id,
      inbox: 'raw',
      received_at: expect.stringMatching(/Z$/),
      query: '',
      headers: expect.objectContaining({ 'content-type': 'text/plain', 'x-tag': 'a' }),
      body: 'not {json',
      verified: null,
      reason: expect.stringContaining('not signed'),
      webhook_id: null,
      status: 200,
    })
    expect(entries.map(({ json }: { json?: unknown }) => json)).toEqual([
      undefined,
      undefined,
      undefined,
      { a: [1, null] },
      undefined,
    ])
    expect(entries[2]).toMatchObject({ encoding: 'base64', query: 'what=1&token=x' })
  })

  test('answers the attempts of an event as the query says, so that retries come', async () => {
    const { body: webhook } = await berth.call('POST', '/webhooks', {
      url: `${urlOf('flaky')}?respond=503,500,200`,
      events: ['quota.threshold'],
    })
    const event = (await berth.control('POST', '/events', { event: 'quota.threshold' })).body
    const { deliveries } = await waitFor(`deliveries=${event.id}`)
    const [{ id }] = deliveries
    expect(deliveries[0]).toMatchObject({
      webhook_id: webhook.id,
      status: 'pending',
      attempts: [{ status: 503 }],
    })
    for (const by of ['5s', '5m']) await berth.control('POST', '/clock', { advance: by })
    const { matched, delivery } = await waitFor(`delivery=${id}`)
    expect([matched, delivery.attempts.map((one: { status: number }) => one.status)]).toEqual([
      true,
      [503, 500, 200],
    ])
    const entries = await read('flaky')
    expect(entries.map((one: { status: number }) => one.status)).toEqual([200, 500, 503])
    for (const entry of entries) {
      expect(entry).toMatchObject({
        verified: true,
        webhook_id: webhook.id,
        reason: expect.stringContaining(webhook.id),
        json: { event: 'quota.threshold', credits_used: 800 },
      })
      expect(entry.headers['webhook-id']).toBe(event.id)
    }
    await berth.call('DELETE', `/webhooks/${webhook.id}`)
    // Another event begins anew.
    expect((await post('flaky?respond=503,200', '', { 'webhook-id': 'other' })).status).toBe(503)
    expect((await post('flaky?respond=204')).status).toBe(204)
    // Another webhook to the same inbox counts its own attempts.
    expect((await post('flaky', '', { 'webhook-id': 'shared' })).status).toBe(200)
    expect((await post('flaky?respond=503,200', '', { 'webhook-id': 'shared' })).status).toBe(503)
    expect((await post('flaky?respond=503,200', '', { 'webhook-id': 'shared' })).status).toBe(200)
  })

  test('an answer that is put off holds up neither the entry nor the end of berth', async () => {
    await using other = await testBerth({ flags: { isolation: 'none' } })
    const answer = fetch(`${other.info.base_url}/_berth/inbox/slow?delay_ms=60000`, { method: 'POST' })
    const { body } = await other.control('GET', '/wait?inbox=slow')
    expect(body).toMatchObject({ matched: true, entries: [{ query: 'delay_ms=60000' }] })
    await other.stop()
    await answer.catch(() => {})
    expect(other.log()).not.toContain('cut off')
  })

  test('refuses more than 1 MiB, with and without a length', async () => {
    const large = new Uint8Array(1024 * 1024 + 1)
    expect((await post('large', large)).status).toBe(413)
    expect((await post('large', new Blob([large]).stream())).status).toBe(413)
    expect((await post('large', large.subarray(1))).status).toBe(200)
  })

  test('does not keep what a sender proves itself with', async () => {
    await post('secret', '', { authorization: 'Bearer sk_live_secret', cookie: 'session=secret' })
    const [{ headers }] = await read('secret')
    expect([headers.authorization, headers.cookie]).toEqual(['Bearer ***', '***'])
  })

  test('answers no other method', async () => {
    const answer = await fetch(urlOf('x'), { method: 'PUT', body: '' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, expect.stringContaining('POST')])
  })
})

describe('a signature', () => {
  const body = '{"event":"task.created"}'
  const signed = (secret: string, at = Date.now()) => signatureHeaders(secret, 'evt_1', at, body)

  test('is verified by the webhooks that lead to the inbox and by the listener, and by no others', async () => {
    const { body: mine } = await berth.call('POST', '/webhooks', { url: urlOf('signed') })
    const { body: other } = await berth.call('POST', '/webhooks', { url: urlOf('elsewhere') })
    const listener = listenSecret(berth.info.admin_token)
    const verdict = async (inbox: string, headers: Record<string, string>, text = body) => {
      await post(inbox, text, headers)
      const [{ verified, webhook_id, reason }] = await read(inbox, '?limit=1')
      return [verified, webhook_id, reason]
    }
    expect(await verdict('signed', signed(mine.secret))).toEqual([true, mine.id, expect.any(String)])
    const fromListener = await verdict('signed', signed(listener))
    expect(fromListener).toEqual([true, null, expect.stringContaining('berth listen')])
    const foreign = await verdict('signed', signed(other.secret))
    expect(foreign).toEqual([false, null, expect.stringContaining(mine.id)])
    expect((await verdict('signed', signed(mine.secret), `${body} `))[0]).toBe(false)
    const old = await verdict('signed', signed(mine.secret, Date.now() - 301_000))
    expect(old).toEqual([false, null, expect.stringContaining('five minutes old')])
    const { 'webhook-timestamp': _, ...half } = signed(mine.secret)
    expect(await verdict('signed', half)).toEqual([false, null, expect.stringContaining('webhook-timestamp')])
    // Nobody knows the secret of somebody else.
    expect((await verdict('free', signed(mine.secret)))[0]).toBe(null)
    for (const { id } of [mine, other]) await berth.call('DELETE', `/webhooks/${id}`)
  })

  test('keeps what was sent with it, however much others send to the inbox and to other names', async () => {
    const headers = signed(listenSecret(berth.info.admin_token))
    for (let n = 0; n < 2; n += 1) await post('kept', body, headers)
    const half = new Uint8Array(512 * 1024)
    for (let n = 0; n < 40; n += 1) await post('kept', half)
    for (let n = 0; n < 110; n += 1) await post(`n${n}`)
    const kept = await read('kept')
    expect(kept.filter((one: { verified: boolean }) => one.verified).length).toBe(2)
    expect(kept.length).toBeLessThan(34)
  }, 30_000)
})

describe('/_berth/inbox', () => {
  test('lists, reads from a position, streams and empties, for the admin alone', async () => {
    const ids: string[] = []
    for (const [name, text] of [
      ['a', '1'],
      ['b', '2'],
      ['a', '3'],
    ] as const) {
      ids.push(((await (await post(name, text)).json()) as { id: string }).id)
    }
    const { inboxes } = (await berth.control('GET', '/inbox')).body
    expect(inboxes.map((one: { name: string; count: number }) => [one.name, one.count])).toEqual([
      ['a', 2],
      ['b', 1],
    ])
    expect((await read('a', `?after=${ids[0]}`)).map((one: { id: string }) => one.id)).toEqual([ids[2]])
    expect((await read('a', '?limit=1')).map((one: { json: number }) => one.json)).toEqual([3])
    const stream = await berth.fetch(`/_berth/inbox/a?follow=true&after=${ids[0]}&limit=2`, {
      headers: { authorization: `Bearer ${berth.info.admin_token}` },
    })
    await post('b', 'not of this one')
    await post('a', '4')
    const streamed = []
    for await (const { event, data } of readEvents(stream)) streamed.push([event, data.body])
    expect(streamed).toEqual([
      ['message', '3'],
      ['message', '4'],
    ])
    expect((await berth.control('DELETE', '/inbox/a')).body).toEqual({ removed: 3 })
    expect(await read('a')).toEqual([])
    expect((await read('b')).length).toBe(2)
    expect((await berth.control('GET', '/inbox/a?after=msg_none')).status).toBe(400)
    for (const [method, path] of [
      ['GET', '/_berth/inbox'],
      ['GET', '/_berth/inbox/a'],
      ['DELETE', '/_berth/inbox/b'],
    ] as const) {
      expect((await berth.call(method, path)).status).toBe(401)
    }
  })

  test('is bounded: old entries go, and the inbox that was quiet for longest', async () => {
    const half = new Uint8Array(512 * 1024)
    for (let n = 0; n < 35; n += 1) await post('heavy', half)
    const [{ count, bytes }] = (await berth.control('GET', '/inbox')).body.inboxes
    expect(count).toBe(31)
    expect(bytes).toBeLessThan(16 * 1024 * 1024)
    for (let n = 0; n < 1_005; n += 1) await post('many', String(n))
    const many = await read('many')
    expect([many.length, many.at(-1).body]).toEqual([1_000, '5'])
    await post('heavy')
    for (let n = 0; n < 99; n += 1) await post(`n${n}`)
    const { inboxes } = (await berth.control('GET', '/inbox')).body
    const names = inboxes.map((one: { name: string }) => one.name)
    expect([names.length, names.includes('many'), names.includes('heavy')]).toEqual([100, false, true])
  }, 120_000)
})
