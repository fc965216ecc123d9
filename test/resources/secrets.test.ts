import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { created } from '../support/projects.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })

const SECRET = 'a-value-that-never-comes-back'

describe('PUT /secrets', () => {
  test('is for the only server that a key reaches, else it has to be named', async () => {
    const none = await berth.call('PUT', '/secrets', { secrets: { A: SECRET } })
    expect(none.status).toBe(400)
    const serverId = await berth.server()
    const only = await berth.call('PUT', '/secrets', { secrets: { A: SECRET } })
    expect(only).toMatchObject({ status: 200, body: { server_id: serverId, keys: ['A'] } })

    const other = await berth.server()
    const { status, body } = await berth.call('PUT', '/secrets', { secrets: { A: SECRET } })
    expect([status, body.error]).toEqual([400, 'bad_request'])
    expect(body.message).toContain('"server_id"')
    const { key } = (await berth.call('POST', '/keys', { label: 'x', allowed_server_ids: [other] })).body
    const scoped = await berth.call(
      'PUT',
      '/secrets',
      { secrets: { B: SECRET } },
      {
        authorization: `Bearer ${key}`,
      },
    )
    expect(scoped.body).toEqual({ server_id: other, keys: ['B'] })
  })

  test('sets, replaces and removes; commands see it and answers never show it', async () => {
    const serverId = await berth.server()
    const set = (secrets: object) => berth.call('PUT', '/secrets', { server_id: serverId, secrets })
    expect((await set({ ONE: SECRET, TWO: 'two' })).body.keys).toEqual(['ONE', 'TWO'])
    expect((await berth.exec(serverId, 'printf %s "$ONE"')).stdout).toBe(SECRET)
    expect((await berth.exec(serverId, 'printf %s "$ONE"', { env: { ONE: 'mine' } })).stdout).toBe('mine')
    const { body } = await set({ ONE: null, TWO: '2' })
    expect(body).toEqual({ server_id: serverId, keys: ['TWO'] })
    expect((await berth.exec(serverId, 'echo "$ONE-$TWO"')).stdout).toBe('-2\n')
    expect(berth.log()).not.toContain(SECRET)
  })

  test('refuses more than a process can be given', async () => {
    const serverId = await berth.server()
    const many = (from: number) =>
      Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`V${from + n}`, 'x'.repeat(60_000)]))
    const set = (secrets: object) => berth.call('PUT', '/secrets', { server_id: serverId, secrets })
    expect((await set(many(0))).status).toBe(200)
    expect((await set(many(100))).status).toBe(400)
    expect((await set({})).body.keys).toHaveLength(12)
    const short = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`S${n}`, 'value']))
    expect((await set(short(1_001))).body.message).toContain('at most 1000')
    expect((await set(short(989))).body.message).toContain('at most 1000')
    expect((await set(short(988))).status).toBe(200)
    const lines = (count: number) => ({ V1: Array(count).fill('line').join('\n') })
    expect((await set(lines(9_002))).body.message).toContain('at most 10000 lines')
    expect((await set(lines(9_001))).status).toBe(200)
  })
})

describe('at rest', () => {
  test('setting them again and again fills no memory: what was replaced long ago is forgotten', async () => {
    const serverId = await berth.server()
    const set = async (secrets: object): Promise<void> => {
      expect((await berth.call('PUT', '/secrets', { server_id: serverId, secrets })).status).toBe(200)
    }
    const many = (round: number) =>
      Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8].map((n) => [`V${n}`, `${round}-${n}`.padEnd(60_000, 'x')]))
    /** What the journal shows of a command's output. */
    const shown = async (text: string): Promise<string> => {
      await berth.exec(serverId, `echo ${text}`)
      const { requests } = (await berth.control('GET', '/requests?path=*/exec&limit=1')).body
      return requests[0].response.body.stdout
    }
    await set({ A: 'replaced-long-ago', KEPT: 'never-replaced' })
    await set({ A: 'soon-replaced' })
    expect(await shown('replaced-long-ago')).toBe('***\n')
    for (let round = 0; round < 8; round += 1) {
      await set(many(round))
      if (round % 2 === 1) await shown('what-the-journal-knows-meanwhile')
    }
    await set({ B: 'replaced-lately' })
    await set({ B: 'current' })
    expect(await shown('replaced-lately never-replaced')).toBe('*** ***\n')
    expect(await shown('replaced-long-ago')).toBe('replaced-long-ago\n')
  })

  test('no value stands in the database in clear', async () => {
    const serverId = await berth.server()
    await berth.call('PUT', '/secrets', { server_id: serverId, secrets: { A: SECRET } })
    const { id } = await created(berth, serverId, { env: { B: SECRET } })
    expect((await berth.call('PUT', `/projects/${id}/secrets`, { secrets: {} })).body.keys).toEqual(['B'])
    for (const file of ['berth.db', 'berth.db-wal']) {
      const bytes = Buffer.from(await Bun.file(`${berth.dataDir}/${file}`).arrayBuffer())
      expect(bytes.includes(SECRET)).toBe(false)
    }
  })

  test('they are the same after a start', async () => {
    const serverId = await berth.server()
    await berth.call('PUT', '/secrets', { server_id: serverId, secrets: { KEPT: SECRET } })
    await berth.call('POST', `/servers/${serverId}/actions`, { action: 'restart' })
    expect((await berth.exec(serverId, 'printf %s "$KEPT"')).stdout).toBe(SECRET)
  })
})
