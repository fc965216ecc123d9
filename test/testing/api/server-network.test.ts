import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'

const flags = {
  isolation: 'none',
  outbound: 'list',
  'outbound-hosts': 'example.com:443',
  'server-hosts': '5432',
}

describe('the network of a server', () => {
  let berth: TestBerth
  let server: string
  const network = (method: 'GET' | 'PATCH', body?: object, id = server) =>
    berth.control(method, `/servers/${id}/network`, body)
  beforeAll(async () => {
    berth = await testBerth({ flags })
    server = await berth.server()
  })
  afterAll(() => berth?.[Symbol.asyncDispose]())

  test("is the instance's default, and says that nothing enforces it on a shared network", async () => {
    expect((await network('GET')).body).toEqual({
      server_id: server,
      outbound: 'list',
      hosts: ['example.com:443'],
      chosen: { outbound: null, hosts: null },
      server_hosts: [5432],
      enforced: false,
      refused: [],
    })
  })

  test('can be changed in part and returned to the default, for each server by itself', async () => {
    const other = await berth.server()
    const changed = await network('PATCH', { outbound: 'public' })
    expect(changed.body).toMatchObject({
      outbound: 'public',
      hosts: ['example.com:443'],
      chosen: { hosts: null },
    })
    const hosts = ['*.example.org', '10.0.0.5:5432']
    expect((await network('PATCH', { hosts })).body).toMatchObject({ outbound: 'public', hosts })
    expect((await network('GET', undefined, other)).body).toMatchObject({ outbound: 'list' })
    expect((await network('PATCH', { outbound: null })).body).toMatchObject({ outbound: 'list', hosts })
    expect((await network('PATCH', { hosts: null })).body.chosen).toEqual({ outbound: null, hosts: null })
  })

  test('is shown and changed while the server sleeps', async () => {
    const sleeping = await berth.server()
    await berth.call('POST', `/servers/${sleeping}/actions`, { action: 'stop' })
    const { body } = await network('PATCH', { outbound: 'none' }, sleeping)
    expect(body).toMatchObject({ outbound: 'none', enforced: null })
  })

  test('has no faults while it is shared, and a network fault says what is to happen', async () => {
    const fault = (body: object) =>
      berth.control('POST', `/servers/${server}/fault`, { kind: 'network', ...body })
    const shared = await fault({ offline: true })
    expect(shared.status).toBe(400)
    expect(shared.body.message).toContain("shares this machine's network")
    expect((await fault({})).body.message).toContain('Say what happens to the network')
    expect((await fault({ loss: 2 })).status).toBe(400)
    expect((await fault({ offline: true, hosts: ['a b'] })).body.message).toContain('"a b" is no host')
  })

  test('refuses an invalid mode or host, and an unknown server', async () => {
    expect((await network('PATCH', { outbound: 'some' })).status).toBe(400)
    const wrong = await network('PATCH', { hosts: ['example.com', 'http://x'] })
    expect(wrong.status).toBe(400)
    expect(wrong.body.message).toContain('"http://x"')
    expect((await network('PATCH', { port: 1 })).status).toBe(400)
    expect((await network('GET', undefined, 'srv_none')).status).toBe(404)
    expect((await network('GET')).body.chosen).toEqual({ outbound: null, hosts: null })
  })
})

test('what is set for a server outlives a restart of berth', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-network-'))
  try {
    let server = ''
    {
      await using berth = await testBerth({ flags: { ...flags, data: directory } })
      server = await berth.server()
      await berth.control('PATCH', `/servers/${server}/network`, { outbound: 'none', hosts: ['a.test'] })
    }
    await using berth = await testBerth({ flags: { ...flags, data: directory } })
    const { body } = await berth.control('GET', `/servers/${server}/network`)
    expect(body).toMatchObject({ outbound: 'none', hosts: ['a.test'] })
  } finally {
    rmSync(directory, { recursive: true })
  }
})
