import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { berthForTests } from '../../support/berth.ts'
import { TestChanges } from '../../support/change-stream.ts'
import { Visitor } from '../../support/visitor.ts'

const EXAMPLE = join(import.meta.dir, '../../../fixtures/shop/fixtures.yaml')

const berth = await berthForTests({ flags: { isolation: 'none', fixtures: EXAMPLE } })

describe('/_berth/fixtures', () => {
  test('lists by kind and name what was made and is still there', async () => {
    const names = async () => {
      const { status, body } = await berth.control('GET', '/fixtures')
      expect(status).toBe(200)
      return body.fixtures.map(({ kind, name }: { kind: string; name: string }) => `${kind} ${name}`)
    }
    const all = [
      ...['account default', 'account trial', 'server api', 'server idle', 'server trial-box'],
      ...['project scratch', 'project shop', 'project waiting', 'key deploy', 'key readonly-trial'],
      'webhook audit',
    ]
    expect(await names()).toEqual(all)
    const { fixtures } = (await berth.control('GET', '/fixtures')).body
    const trial = fixtures.find(({ name }: { name: string }) => name === 'trial')
    await berth.control('DELETE', `/accounts/${trial.id}`)
    expect(await names()).toEqual(all.filter((name) => !name.includes('trial')))
  })

  test('shows keys and secrets to the admin token only', async () => {
    const answer = await berth.call('GET', '/_berth/fixtures')
    expect([answer.status, answer.body.error]).toEqual([401, 'missing_or_invalid_api_key'])
    expect(JSON.stringify(answer.body)).not.toContain('sk_live_trial')
  })

  test('that replace the key of an account end what the earlier key has begun', async () => {
    const apply = async (key: string): Promise<void> => {
      const document = { accounts: { rotated: { key } } }
      expect((await berth.control('POST', '/fixtures', document)).status).toBe(200)
    }
    const [earlier, later] = ['sk_live_rotated_earlier', 'sk_live_rotated_later']
    await apply(earlier)
    const visitor = new Visitor(berth.info.base_url)
    await visitor.post('/signin', { api_key: earlier })
    expect((await visitor.get('/access')).status).toBe(200)
    using changes = await TestChanges.socket(berth, { authorization: `Bearer ${earlier}` })
    await apply(earlier)
    expect((await visitor.get('/access')).status).toBe(200)
    await apply(later)
    expect((await visitor.get('/access')).status).toBe(303)
    expect((await changes.closed).code).toBe(4002)
    const statusOf = async (key: string): Promise<number> =>
      (await berth.call('GET', '/servers', undefined, { authorization: `Bearer ${key}` })).status
    expect([await statusOf(earlier), await statusOf(later)]).toEqual([401, 200])
  })

  test('gives the schema of the files to everybody', async () => {
    const answer = await fetch(`${berth.info.base_url}/_berth/fixtures/schema`)
    expect([answer.status, await answer.json()]).toEqual([
      200,
      await Bun.file(join(import.meta.dir, '../../../docs/fixtures.schema.json')).json(),
    ])
  })

  test('a restored snapshot is as it was kept: fixtures put nothing into it', async () => {
    const { fixtures } = (await berth.control('GET', '/fixtures')).body
    const idle = fixtures.find(({ name }: { name: string }) => name === 'idle')
    await berth.call('DELETE', `/servers/${idle.id}`)
    await berth.control('POST', '/snapshots', { name: 'without' })
    await berth.control('POST', '/reset')
    await berth.control('POST', '/snapshots/without/restore')
    const { servers } = (await berth.call('GET', '/servers')).body
    expect(servers.map(({ task }: { task: string }) => task)).toEqual(['shop api'])
  })
})
