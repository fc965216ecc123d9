import { expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'

const berth = await berthForTests({ flags: { plan: { servers: 10 } } })

test.each(['tasks', 'builds'] as const)(
  'GET /%s lists those of all servers that the credential reaches, newest first, as they are now',
  async (noun) => {
    const path = `/${noun}`
    const create = async (serverId: string, headers?: Record<string, string>): Promise<string> => {
      const created = await berth.call(
        'POST',
        `/servers/${serverId}/${noun}`,
        { goal: 'landing page' },
        headers,
      )
      expect(created.status).toBeLessThan(300)
      return created.body.task_id ?? created.body.build_id
    }
    const list = async (headers?: Record<string, string>): Promise<string[]> =>
      (await berth.call('GET', path, undefined, headers)).body[noun].map(({ id }: { id: string }) => id)
    const account = (await berth.control('POST', '/accounts', {})).body
    const others = { authorization: `Bearer ${account.api_key}` }
    const [a, b] = [await berth.server(), await berth.server()]
    const key = await berth.call('POST', '/keys', { label: 'scoped', allowed_server_ids: [a] })
    const scoped = { authorization: `Bearer ${key.body.key}` }
    expect([await list(), await list(scoped), await list(others)]).toEqual([[], [], []])
    const first = await create(a)
    expect([await list(), await list(scoped)]).toEqual([[first], [first]])
    const second = await create(b)
    const third = await create(a)
    expect(await list()).toEqual([third, second, first])
    expect(await list(scoped)).toEqual([third, first])
    const { id } = (await berth.call('POST', '/servers', {}, others)).body
    const foreign = await create(id, others)
    expect(await list(others)).toEqual([foreign])
    expect(await list()).toEqual([third, second, first])
    await berth.call('DELETE', `/servers/${a}`)
    expect([await list(), await list(scoped), await list(others)]).toEqual([[second], [], [foreign]])
    await berth.call('DELETE', `/servers/${b}`)
  },
)
