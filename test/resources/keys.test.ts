import { Database as Sqlite } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests()

/** A request with another key than the first. */
const as = (key: string, method: string, path: string, body?: unknown) =>
  berth.call(method, path, body, { authorization: `Bearer ${key}` })
const create = async (body: object = {}) =>
  (await berth.call('POST', '/keys', { label: 'a label', ...body })).body
const listed = async (id: string) =>
  (await berth.call('GET', '/keys')).body.keys.find((key: { id: string }) => key.id === id)

describe('POST /keys', () => {
  test('makes a key that works at once, and tells it this once', async () => {
    const { status, body } = await berth.call('POST', '/keys', { label: 'CI' })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^key_[0-9a-z]{26}$/),
      label: 'CI',
      masked: `sk_live_…${body.key.slice(-4)}`,
      allowed_server_ids: [],
      allowed_project_ids: [],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      last_used_at: null,
      key: expect.stringMatching(/^sk_live_[0-9A-Za-z]{43}$/),
    })
    expect((await as(body.key, 'GET', '/servers')).status).toBe(200)
    const { key: _, ...shown } = body
    expect(await listed(body.id)).toEqual({ ...shown, last_used_at: expect.any(String) })
  })

  test('takes a scope along, each id once', async () => {
    const server = await berth.server()
    const { allowed_server_ids, key } = await create({ allowed_server_ids: [server, server] })
    expect(allowed_server_ids).toEqual([server])
    expect((await as(key, 'POST', '/servers', {})).status).toBe(403)
  })

  test.each([
    ['40 letters', 'x'.repeat(40), 201],
    ['41 letters', 'x'.repeat(41), 400],
    ['40 emoji, which are two units each', '🚢'.repeat(40), 201],
    ['41 emoji', '🚢'.repeat(41), 400],
    ['20 letters with a combining mark each', 'e\u0301'.repeat(20), 201],
    ['20 of them and one letter', `${'e\u0301'.repeat(20)}x`, 400],
    ['40 characters of 3 bytes', '漢'.repeat(40), 201],
    ['one character', 'x', 201],
    ['none', '', 400],
    ['half a surrogate pair', 'x\ud83d', 400],
    ['a number', 5, 400],
    ['null', null, 400],
    ['nothing at all', undefined, 400],
  ])('a label of %s', async (_name, label, expected) => {
    const { status, body } = await berth.call('POST', '/keys', { label })
    expect(status).toBe(expected)
    if (status === 201) expect((await listed(body.id)).label).toBe(label)
    else expect(body).toMatchObject({ error: 'bad_request', message: expect.stringContaining('"label"') })
  })

  test('a flood of unknown ids is refused at once, in a short sentence', async () => {
    const ids = Array.from({ length: 200_000 }, (_, n) => `srv_${n}`)
    const { status, body } = await berth.call('POST', '/keys', { label: 'x', allowed_server_ids: ids })
    expect(status).toBe(400)
    expect(body.message.length).toBeLessThan(300)
  })

  test('repeated with an Idempotency-Key makes one key and tells it again', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const first = await berth.call('POST', '/keys', { label: 'once' }, headers)
    const again = await berth.call('POST', '/keys', { label: 'once' }, headers)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
  })
})

describe('GET /keys', () => {
  test('lists newest first, masked, no secret anywhere', async () => {
    const made = [await create(), await create(), await create()]
    const { status, body } = await berth.call('GET', '/keys')
    expect(status).toBe(200)
    const ids = body.keys.map((key: { id: string }) => key.id)
    expect(ids.slice(0, 3)).toEqual(made.map(({ id }) => id).reverse())
    expect(body.keys.at(-1).label).toBe('First key')
    for (const { key } of [...made, { key: berth.info.api_key }])
      expect(JSON.stringify(body)).not.toContain(key)
  })
})

describe('PATCH /keys/{keyId}', () => {
  test('replaces the scope, which holds from the next request on', async () => {
    const [one, other] = [await berth.server(), await berth.server()]
    const { id, key } = await create()
    const scope = { allowed_server_ids: [one, one], allowed_project_ids: [] }
    const { status, body } = await berth.call('PATCH', `/keys/${id}`, scope)
    expect(status).toBe(200)
    expect(body).toEqual({ id, allowed_server_ids: [one], allowed_project_ids: [] })
    expect((await as(key, 'GET', `/servers/${one}`)).status).toBe(200)
    expect((await as(key, 'GET', `/servers/${other}`)).status).toBe(404)
    await berth.call('PATCH', `/keys/${id}`, { allowed_server_ids: [other] })
    expect((await as(key, 'GET', `/servers/${one}`)).status).toBe(404)
    expect((await as(key, 'GET', `/servers/${other}`)).status).toBe(200)
    expect(await listed(id)).toMatchObject({ allowed_server_ids: [other] })
  })

  test('what is left out means everything', async () => {
    const { id, key } = await create({ allowed_server_ids: [await berth.server()] })
    expect((await as(key, 'GET', '/keys')).status).toBe(403)
    const { body } = await berth.call('PATCH', `/keys/${id}`, {})
    expect(body).toEqual({ id, allowed_server_ids: [], allowed_project_ids: [] })
    expect((await as(key, 'GET', '/keys')).status).toBe(200)
  })

  test('a key that does not exist is 404', async () => {
    expect((await berth.call('PATCH', '/keys/key_none', {})).status).toBe(404)
  })

  test('removing a server from under a key opens it nothing else', async () => {
    const [gone, other] = [await berth.server(), await berth.server()]
    const { id, key } = await create({ allowed_server_ids: [gone] })
    expect((await as(key, 'DELETE', `/servers/${gone}`)).status).toBe(200)
    expect((await as(key, 'GET', '/servers')).body).toEqual({ servers: [] })
    expect((await as(key, 'GET', `/servers/${other}`)).status).toBe(404)
    expect((await as(key, 'POST', '/servers', {})).status).toBe(403)
    expect(await listed(id)).toMatchObject({ allowed_server_ids: [gone] })
  })
})

describe('a scoped key', () => {
  test('sees its servers alone in lists, and reaches their commands and files alone', async () => {
    const [own, other] = [await berth.server(), await berth.server()]
    const { key } = await create({ allowed_server_ids: [own] })
    const { body } = await as(key, 'GET', '/servers')
    expect(body.servers.map((server: { id: string }) => server.id)).toEqual([own])
    // An account-wide key in between: what is kept for it is not shown to the other.
    expect((await berth.call('GET', '/servers')).body.servers.length).toBeGreaterThan(1)
    expect((await as(key, 'GET', '/servers')).body.servers.length).toBe(1)
    const run = (id: string) => as(key, 'POST', `/servers/${id}/exec`, { command: 'echo hi' })
    expect((await run(own)).body.stdout).toBe('hi\n')
    expect((await run(other)).status).toBe(404)
    expect((await as(key, 'GET', `/servers/${other}/files`)).status).toBe(404)
    expect((await berth.call('GET', `/servers/${other}`)).body.server.status).toBe('running')
  })

  test('for projects alone is not an account-wide one, and reaches all servers', async () => {
    const server = await berth.server()
    const { id, key } = await create()
    limitToProjects(berth.dataDir, id, ['prj_some'])
    expect((await as(key, 'POST', '/servers', {})).status).toBe(403)
    expect((await as(key, 'GET', '/keys')).status).toBe(403)
    expect((await as(key, 'GET', `/servers/${server}`)).status).toBe(200)
    expect(await listed(id)).toMatchObject({ allowed_server_ids: [], allowed_project_ids: ['prj_some'] })
  })

  test('is not answered with what another key got for the same Idempotency-Key', async () => {
    const [own, other] = [await berth.server(), await berth.server()]
    const { key } = await create({ allowed_server_ids: [own] })
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const path = `/servers/${other}/exec`
    await berth.call('POST', path, { command: 'echo secret' }, headers)
    const authorization = `Bearer ${key}`
    const { status, body } = await berth.call(
      'POST',
      path,
      { command: 'echo secret' },
      { ...headers, authorization },
    )
    expect(status).toBe(404)
    expect(JSON.stringify(body)).not.toContain('secret')
  })
})

describe('DELETE /keys/{keyId}', () => {
  test('ends a key at once', async () => {
    const { id, key } = await create()
    expect((await as(key, 'GET', '/servers')).status).toBe(200)
    const { status, body } = await berth.call('DELETE', `/keys/${id}`)
    expect([status, body]).toEqual([200, { id, deleted: true }])
    expect((await as(key, 'GET', '/servers')).status).toBe(401)
    expect(await listed(id)).toBeUndefined()
    expect((await berth.call('DELETE', `/keys/${id}`)).status).toBe(404)
  })

  test('of the key in use is answered, and is its last request', async () => {
    const { id, key } = await create()
    expect((await as(key, 'DELETE', `/keys/${id}`)).body).toEqual({ id, deleted: true })
    expect((await as(key, 'GET', '/servers')).status).toBe(401)
    expect((await as(key, 'DELETE', `/keys/${id}`)).status).toBe(401)
  })

  test('with a request under way: that one is answered still', async () => {
    const server = await berth.server()
    const { id, key } = await create()
    const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'under way' }
    const command = 'echo > begun; while [ ! -e go ]; do sleep 0.01; done; echo done'
    const running = berth.call('POST', `/servers/${server}/exec`, { command }, headers)
    const begun = () => berth.call('GET', `/servers/${server}/files?path=begun`)
    await until(async () => (await begun()).status === 200, 'the command runs')
    await berth.call('DELETE', `/keys/${id}`)
    await berth.call('PUT', `/servers/${server}/files`, { path: 'go', content: '' })
    expect((await running).body.stdout).toBe('done\n')
  })

  test('the last account-wide key can be neither deleted nor limited, though scoped ones are left', async () => {
    await using alone = await testBerth()
    const server = await alone.server()
    const {
      keys: [first],
    } = (await alone.call('GET', '/keys')).body
    await alone.call('POST', '/keys', { label: 'scoped', allowed_server_ids: [server] })
    for (const refused of [
      await alone.call('DELETE', `/keys/${first.id}`),
      await alone.call('PATCH', `/keys/${first.id}`, { allowed_server_ids: [server] }),
    ]) {
      expect(refused.status).toBe(400)
      expect(refused.body.message).toMatch(/last one.*Create another/)
    }
    expect((await alone.call('PATCH', `/keys/${first.id}`, {})).status).toBe(200)
    await alone.call('POST', '/keys', { label: 'second' })
    const limited = await alone.call('PATCH', `/keys/${first.id}`, { allowed_server_ids: [server] })
    expect(limited.status).toBe(200)
  })
})

test('a repeated request is not answered any more with what the key has lost', async () => {
  const [mine, other] = [await berth.server(), await berth.server()]
  const { id, key } = await create({ allowed_server_ids: [mine] })
  const headers = { authorization: `Bearer ${key}`, 'idempotency-key': crypto.randomUUID() }
  const ask = () => berth.call('POST', `/servers/${mine}/exec`, { command: 'echo told' }, headers)
  expect((await ask()).body.stdout).toBe('told\n')
  expect((await ask()).headers.get('idempotent-replayed')).toBe('true')
  await berth.call('PATCH', `/keys/${id}`, { allowed_server_ids: [other] })
  expect((await ask()).status).toBe(404)
})

test('no file of the database holds a key in the clear, deleted and repeated ones included', async () => {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const keys = [berth.info.api_key, (await create()).key]
  keys.push((await berth.call('POST', '/keys', { label: 'x' }, headers)).body.key)
  const deleted = await create()
  await berth.call('DELETE', `/keys/${deleted.id}`)
  keys.push(deleted.key)
  const files = readdirSync(berth.dataDir).filter((name) => name.startsWith('berth.db'))
  expect(files).toContain('berth.db-wal')
  for (const file of files) {
    const bytes = readFileSync(join(berth.dataDir, file))
    for (const key of keys) {
      expect([file, bytes.includes(key)]).toEqual([file, false])
      // What stands behind the prefix is the secret.
      expect([file, bytes.includes(key.slice('sk_live_'.length))]).toEqual([file, false])
    }
  }
  expect(berth.log()).not.toContain(deleted.key)
})

test('a response that carries a credential stays out of caches, repeated ones too', async () => {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  for (let times = 0; times < 2; times += 1) {
    const made = await berth.call('POST', '/keys', { label: 'uncached' }, headers)
    expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store'])
  }
  const webhook = await berth.call('POST', '/webhooks', { url: 'https://example.com/' })
  expect([webhook.status, webhook.headers.get('cache-control')]).toEqual([201, 'no-store'])
  for (const [method, path] of [
    ['POST', '/accounts'],
    ['GET', '/fixtures'],
    ['POST', '/sign-in-links'],
  ] as const) {
    const { headers: got } = await berth.control(method, path)
    expect([path, got.get('cache-control')]).toEqual([path, 'no-store'])
  }
})

/** Limits a key to projects that need not exist, by writing to the database file beside the running berth. */
function limitToProjects(dataDir: string, keyId: string, projects: string[]): void {
  const sqlite = new Sqlite(join(dataDir, 'berth.db'))
  try {
    sqlite.run('PRAGMA busy_timeout = 5000')
    const change = 'UPDATE api_keys SET allowed_project_ids = ? WHERE id = ?'
    sqlite.run(change, [JSON.stringify(projects), keyId])
  } finally {
    sqlite.close()
  }
}
