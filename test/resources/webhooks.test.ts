import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { EVENT_NAMES } from '../../src/resources/events/names.ts'
import { berthForTests } from '../support/berth.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })

/** A literal address: no name server is asked. */
const url = 'https://8.8.8.8/hook'
const create = (body: unknown) => berth.call('POST', '/webhooks', body)
const list = async () => (await berth.call('GET', '/webhooks')).body.webhooks

describe('POST /webhooks', () => {
  test('answers with the exact fields, the secret among them', async () => {
    const { status, body } = await create({ url, events: ['server.created'] })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^wh_[0-9a-z]{26}$/),
      url,
      events: ['server.created'],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    })
    expect(Buffer.from(body.secret.slice('whsec_'.length), 'base64').length).toBe(32)
  })

  test.each([[undefined], [[]]])('events %j subscribes to all fifteen', async (events) => {
    const { body } = await create({ url, events })
    expect(body.events).toEqual([...EVENT_NAMES])
    expect(body.events.length).toBe(15)
  })

  test('every name is accepted, project.* and tuning.* too, and doubles collapse', async () => {
    for (const name of EVENT_NAMES)
      expect((await create({ url, events: [name] })).body.events).toEqual([name])
    const { body } = await create({ url, events: ['task.failed', 'server.created', 'task.failed'] })
    expect(body.events).toEqual(['task.failed', 'server.created'])
  })

  test('a name that does not resolve is accepted: berth works offline, and deliveries check anew', async () => {
    const { status, body } = await create({ url: 'https://hooks.berth.invalid/x?y=1' })
    expect([status, body.url]).toEqual([201, 'https://hooks.berth.invalid/x?y=1'])
  })

  test('characters that no URL has are shown as they are sent', async () => {
    expect((await create({ url: 'https://8.8.8.8/ä|b' })).body.url).toBe('https://8.8.8.8/%C3%A4|b')
  })
})

test('GET lists newest first, never with the secret', async () => {
  const older = (await create({ url })).body
  const { secret: _, ...newer } = (await create({ url, events: ['quota.threshold'] })).body
  const [first, second] = await list()
  expect(first).toEqual({ ...newer, disabled_at: null })
  expect(second.id).toBe(older.id)
  expect(JSON.stringify(await list())).not.toContain('whsec_')
})

test('the secret lies in no file of the data folder, neither as text nor as bytes', async () => {
  const { secret } = (await create({ url })).body
  const base64 = secret.slice('whsec_'.length)
  for (const name of ['berth.db', 'berth.db-wal']) {
    const bytes = Buffer.from(await Bun.file(join(berth.dataDir, name)).bytes())
    expect(bytes.includes('quota.threshold')).toBe(name.endsWith('wal'))
    expect(bytes.includes(base64)).toBe(false)
    expect(bytes.includes(Buffer.from(base64, 'base64'))).toBe(false)
  }
  using database = new Database(join(berth.dataDir, 'berth.db'), { readonly: true })
  expect(database.query('SELECT secret FROM webhooks').all().length).toBeGreaterThan(0)
  expect(berth.log()).not.toContain(base64)
})

describe('DELETE /webhooks/{webhookId}', () => {
  test('ends it once', async () => {
    const { id } = (await create({ url })).body
    expect(await berth.call('DELETE', `/webhooks/${id}`)).toMatchObject({
      status: 200,
      body: { id, deleted: true },
    })
    expect((await list()).map((one: { id: string }) => one.id)).not.toContain(id)
    expect((await berth.call('DELETE', `/webhooks/${id}`)).status).toBe(404)
  })

  test('of none is 404', async () => {
    const { status, body } = await berth.call('DELETE', '/webhooks/wh_none')
    expect([status, body.error]).toEqual([404, 'not_found'])
  })
})
