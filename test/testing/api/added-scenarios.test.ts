import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })

describe('one scenario', () => {
  const say = (text: string, match: unknown) => ({ match, steps: [{ complete: text }] })
  const add = (scenario: object) => berth.control('POST', '/scenarios', scenario)
  const all = async () => (await berth.control('GET', '/scenarios')).body.scenarios

  test('is added before those that were set, and removed by its id, and nothing else changes', async () => {
    const set = say('set', { glob: '*' })
    await berth.control('PUT', '/scenarios', { scenarios: [set] })
    const before = await all()
    const added = await add(say('added', 'mine'))
    const { id } = added.body.scenario
    expect(added).toMatchObject({
      status: 201,
      body: { scenario: { ...say('added', 'mine'), source: 'control', id: expect.stringMatching(/^scn_/) } },
    })
    expect(await all()).toEqual([added.body.scenario, ...before])
    // A list that keeps it keeps its id.
    await berth.control('PUT', '/scenarios', { scenarios: [set, say('added', 'mine')] })
    expect((await all())[1]).toEqual(added.body.scenario)
    expect(await berth.control('DELETE', `/scenarios/${id}`)).toMatchObject({
      status: 200,
      body: { id, deleted: true },
    })
    expect(await all()).toEqual(before)
    expect((await berth.control('DELETE', `/scenarios/${id}`)).status).toBe(404)
    await berth.control('DELETE', '/scenarios')
  })

  test.each([
    ['all goals', {}],
    ['a glob', { glob: 'deploy *' }],
    ['an expression', { regex: '^deploy' }],
  ])('for %s of an account leaves the goals of other accounts alone', async (_what, match) => {
    const accounts = await Promise.all(
      ['a', 'b'].map(async (label) => (await berth.control('POST', '/accounts', { label })).body),
    )
    for (const { id } of accounts) await add(say(`for ${id}`, { ...match, account_id: id }))
    const resultOf = async (headers: Record<string, string>) => {
      const { id: server } = (await berth.call('POST', '/servers', {}, headers)).body
      const started = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'deploy shop' }, headers)
      const waited = await berth.control('GET', `/wait?task=${started.body.task_id}`)
      return waited.body.task.result
    }
    for (const { id, api_key: key } of accounts)
      expect(await resultOf({ authorization: `Bearer ${key}` })).toBe(`for ${id}`)
    expect(await resultOf({})).toStartWith('Nothing was done')
    const previewed = await berth.control('POST', '/scenarios/preview', {
      goal: 'deploy shop',
      account_id: accounts[0].id,
    })
    expect(previewed.body.steps).toEqual([{ kind: 'complete', text: `for ${accounts[0].id}` }])
    await berth.control('DELETE', '/scenarios')
    for (const { id } of accounts) await berth.control('DELETE', `/accounts/${id}`)
  })
})
