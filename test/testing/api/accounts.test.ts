import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests } from '../../support/berth.ts'
import { processesOf } from '../../support/processes.ts'

const berth = await berthForTests({ flags: { freeze: '2030-01-10T00:00:00Z', plan: '{"servers":30}' } })

/** A new account and calls with its key. */
async function account(wishes: object = {}) {
  const { status, body } = await berth.control('POST', '/accounts', wishes)
  expect(status).toBe(201)
  const headers = { authorization: `Bearer ${body.api_key}` }
  return {
    id: body.id as string,
    call: (method: string, path: string, sent?: unknown) => berth.call(method, path, sent, headers),
    /** A POST whose answer would come as a stream, were it no refusal. */
    stream: (path: string, sent: unknown) =>
      berth.call('POST', path, sent, { ...headers, accept: 'text/event-stream' }),
    change: (changes: object) => berth.control('PATCH', `/accounts/${body.id}`, changes),
  }
}

const viewOf = async (id: string) => {
  const { body } = await berth.control('GET', '/accounts')
  return body.accounts.find((one: { id: string }) => one.id === id)
}

describe('accounts', () => {
  test('are made with a key of their own and see nothing of one another', async () => {
    const one = await account({ label: 'one' })
    const other = await account()
    const { body: made } = await one.call('POST', '/servers', { task: 'mine' })
    expect((await one.call('GET', '/servers')).body.servers.length).toBe(1)
    expect((await other.call('GET', '/servers')).body.servers).toEqual([])
    expect((await other.call('GET', `/servers/${made.id}`)).status).toBe(404)
    expect(await viewOf(one.id)).toEqual({
      id: one.id,
      label: 'one',
      created_at: '2030-01-10T00:00:00.000Z',
      plan: {
        tiers: ['small', 'medium', 'large'],
        servers: 30,
        projects: { small: 3, medium: 10, large: 25 },
        storage_gb: { small: 5, medium: 20, large: 80 },
        cpus: { small: 1, medium: 2, large: 4 },
        memory_gib: { small: 1, medium: 4, large: 8 },
        credits_per_hour: { small: 1, medium: 2, large: 4 },
        credits_per_task: 0.1,
        credits_per_build: 0.5,
        monthly_cap: 1000,
      },
      budget_cap: 1000,
      credits_used: 0,
      month: '2030-01',
      servers: 1,
    })
  })

  test('go with all they have: processes, folders, keys, faults', async () => {
    const one = await account()
    const { body: made } = await one.call('POST', '/servers')
    await one.call('POST', `/servers/${made.id}/exec`, { command: 'sleep 1000 &' })
    const folder = join(berth.dataDir, 'servers', made.id)
    expect(existsSync(folder)).toBe(true)
    const effect = { delay_ms: 1 }
    await berth.control('POST', '/faults', { match: { account_id: one.id }, effect })
    const { body: other } = await berth.control('POST', '/faults', { match: { path: '/none' }, effect })
    const { status, body } = await berth.control('DELETE', `/accounts/${one.id}`)
    expect([status, body]).toEqual([200, { id: one.id, deleted: true }])
    expect((await one.call('GET', '/servers')).status).toBe(401)
    expect(existsSync(folder)).toBe(false)
    expect(processesOf(folder)).toEqual([])
    expect(await viewOf(one.id)).toBeUndefined()
    const { faults } = (await berth.control('GET', '/faults')).body
    expect(faults.map(({ id }: { id: string }) => id)).toEqual([other.id])
    await berth.control('DELETE', '/faults')
    expect((await berth.control('DELETE', `/accounts/${one.id}`)).status).toBe(404)
  })

  test('that go while servers come up leave none of these', async () => {
    const one = await account()
    const creating = Array.from({ length: 5 }, () => one.call('POST', '/servers'))
    await Bun.sleep(1)
    expect((await berth.control('DELETE', `/accounts/${one.id}`)).status).toBe(200)
    const answers = await Promise.all(creating)
    expect(answers.filter(({ status }) => status >= 500)).toEqual([])
    for (const { body } of answers)
      expect(existsSync(join(berth.dataDir, 'servers', `${body.id}`))).toBe(false)
    const known = (await berth.control('GET', '/accounts')).body.accounts
    const count = known.reduce((sum: number, { servers }: { servers: number }) => sum + servers, 0)
    expect(readdirSync(join(berth.dataDir, 'servers')).length).toBe(count)
  })

  test('the first one cannot be deleted', async () => {
    const first = (await berth.control('GET', '/accounts')).body.accounts.at(-1)
    const { status, body } = await berth.control('DELETE', `/accounts/${first.id}`)
    expect([status, body.error]).toEqual([400, 'bad_request'])
    expect(body.message).toContain('is the first one')
  })

  test('are listed newest first', async () => {
    const list = async (): Promise<string[]> =>
      (await berth.control('GET', '/accounts')).body.accounts.map(({ id }: { id: string }) => id)
    const before = await list()
    const older = await account()
    const newer = await account()
    expect(await list()).toEqual([newer.id, older.id, ...before])
  })

  test('take a plan as a whole, and limits on top of it', async () => {
    const one = await account({ plan: { servers: 3, cpus: { small: 0.5 } }, budget_cap: 7.5 })
    expect(await viewOf(one.id)).toMatchObject({
      plan: { servers: 3, cpus: { small: 0.5, medium: 2, large: 4 } },
      budget_cap: 7.5,
    })
    const limited = await one.change({ limits: { cpus: { medium: 1 } } })
    expect(limited.body.plan).toMatchObject({ servers: 3, cpus: { small: 0.5, medium: 1, large: 4 } })
    const replaced = await one.change({ plan: { monthly_cap: 12 }, budget_cap: null, label: 'new' })
    expect(replaced.body).toMatchObject({
      label: 'new',
      budget_cap: 12,
      plan: { servers: 30, cpus: { small: 1 } },
    })
    expect((await one.change({ plan: null })).body.plan.monthly_cap).toBe(1000)
  })

  test('a change of which one part is wrong changes nothing', async () => {
    const one = await account()
    const { status } = await one.change({ label: 'x', budget_cap: 5, credits_used: -1 })
    expect(status).toBe(400)
    expect(await viewOf(one.id)).toMatchObject({ label: '', budget_cap: 1000 })
    expect((await berth.control('PATCH', '/accounts/acct_none', { label: 'x' })).status).toBe(404)
  })
})

describe('a plan', () => {
  test('allows exactly as many servers as it says, asked for at once', async () => {
    const one = await account({ plan: { servers: 10 } })
    const answers = await Promise.all(Array.from({ length: 14 }, () => one.call('POST', '/servers')))
    expect(answers.filter(({ status }) => status === 201).length).toBe(10)
    const refused = answers.filter(({ status }) => status === 403)
    expect(refused.length).toBe(4)
    expect(refused[0]?.body).toEqual({
      error: 'plan_limit',
      message:
        'The account has the 10 servers that its plan allows. Delete one, or raise "servers" of the plan.',
    })
    const { body } = await one.call('GET', '/servers')
    await one.call('DELETE', `/servers/${body.servers[0].id}`)
    expect((await one.call('POST', '/servers')).status).toBe(201)
    expect((await one.call('POST', '/servers')).status).toBe(403)
    await berth.control('DELETE', `/accounts/${one.id}`)
  })

  test('refuses a tier that it does not have', async () => {
    const one = await account({ plan: { tiers: ['small', 'medium'] } })
    const { status, body } = await one.call('POST', '/servers', { tier: 'large' })
    expect([status, body.error]).toEqual([403, 'plan_limit'])
    expect(body.message).toContain('does not allow the tier large')
    expect(body.message).toContain('small, medium')
    expect((await one.call('POST', '/servers', { tier: 'medium' })).status).toBe(201)
  })

  test('gives the storage that files may take', async () => {
    const one = await account({ plan: { storage_gb: { small: 0.001 } } })
    const { body } = await one.call('POST', '/servers')
    const write = (bytes: number) =>
      one.call('PUT', `/servers/${body.id}/files`, { path: 'f', content: 'x'.repeat(bytes) })
    expect((await write(900_000)).status).toBe(201)
    const refused = await write(1_100_000)
    expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
    expect(refused.body.message).toContain('of 1000000 bytes')
  })
})

describe('a budget', () => {
  test('is used by what runs, ends everything at its cap, and is new in the next month', async () => {
    const one = await account({ budget_cap: 2 })
    const { body: small } = await one.call('POST', '/servers')
    const { body: large } = await one.call('POST', '/servers', { tier: 'large' })
    await one.call('POST', `/servers/${large.id}/exec`, { command: 'sleep 1000 &' })
    await berth.control('POST', '/clock', { advance: '3m' })
    const listed = (await one.call('GET', '/servers')).body.servers
    expect(listed.map(({ creditsUsed }: { creditsUsed: number }) => creditsUsed)).toEqual([0.2, 0.05])
    await berth.control('POST', '/clock', { advance: '3m' })
    const used = (await one.call('GET', `/servers/${large.id}`)).body.server.creditsUsed
    expect(used).toBe(0.4)
    expect(await viewOf(one.id)).toMatchObject({ credits_used: 0.5, month: '2030-01' })

    await berth.control('POST', '/clock', { advance: '2h' })
    const { body } = await one.call('GET', '/servers')
    expect(body.servers.map(({ status }: { status: string }) => status)).toEqual(['sleeping', 'sleeping'])
    expect(body.servers.map(({ creditsUsed }: { creditsUsed: number }) => creditsUsed)).toEqual([1.6, 0.4])
    expect(processesOf(join(berth.dataDir, 'servers', large.id))).toEqual([])

    const refused = await one.call('POST', '/servers')
    expect([refused.status, refused.body.error]).toEqual([403, 'plan_limit'])
    for (const [path, sent] of [
      ['actions', { action: 'start' }],
      ['actions', { action: 'restart' }],
      ['exec', { command: 'true' }],
    ] as const) {
      const { status, body: answer } = await one.call('POST', `/servers/${small.id}/${path}`, sent)
      expect([status, answer.error]).toEqual([402, 'budget_exceeded'])
      expect(answer.message).toContain('used its budget of 2 credits for 2030-01')
    }
    const streamed = await one.stream(`/servers/${small.id}/exec`, { command: 'true' })
    expect([streamed.status, streamed.body.error]).toEqual([402, 'budget_exceeded'])
    const stopped = await one.call('POST', `/servers/${small.id}/actions`, { action: 'stop' })
    expect(stopped.body.status).toBe('sleeping')

    await one.change({ budget_cap: 3 })
    const woken = await one.call('POST', `/servers/${small.id}/exec`, { command: 'echo awake' })
    expect(woken.body.stdout).toBe('awake\n')
    await one.change({ credits_used: 3 })
    expect(await viewOf(one.id)).toMatchObject({ credits_used: 3, budget_cap: 3 })
    await berth.control('POST', '/clock', { set: '2030-02-01' })
    expect(await viewOf(one.id)).toMatchObject({ credits_used: 0, month: '2030-02' })
    expect((await one.call('POST', `/servers/${small.id}/actions`, { action: 'start' })).status).toBe(200)
  })

  test('that ends while servers come up lets none of them slip through', async () => {
    const one = await account({ budget_cap: 1 })
    const creating = Array.from({ length: 8 }, () => one.call('POST', '/servers'))
    const [answers] = await Promise.all([Promise.all(creating), one.change({ credits_used: 1 })])
    for (const { status, body } of answers) {
      if (status === 201) continue
      expect([status, body.error]).toEqual([403, 'plan_limit'])
    }
    await one.change({ label: 'all that was begun is over' })
    const { servers } = (await one.call('GET', '/servers')).body
    const made = answers.filter(({ status }) => status === 201).map(({ body }) => body.id)
    expect(servers.map(({ id }: { id: string }) => id).sort()).toEqual(made.sort())
    for (const { id, status } of servers) {
      expect(status).toBe('sleeping')
      expect(processesOf(join(berth.dataDir, 'servers', id))).toEqual([])
    }
  })

  test('that is lowered below the use ends what runs at once', async () => {
    const one = await account()
    const { body: made } = await one.call('POST', '/servers')
    await berth.control('POST', '/clock', { advance: '1h' })
    await one.change({ budget_cap: 0.5 })
    expect((await one.call('GET', `/servers/${made.id}`)).body.server).toMatchObject({
      status: 'sleeping',
      creditsUsed: 1,
    })
  })
})
