import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'

const EXAMPLE = join(import.meta.dir, '../../../fixtures/shop/fixtures.yaml')

const folder = mkdtempSync(join(tmpdir(), 'berth-apply-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A fixtures file with this content. */
function fixtures(content: object): string {
  const path = join(folder, 'fixtures.json')
  writeFileSync(path, JSON.stringify(content))
  return path
}

/** What fixtures have made, by kind and name. */
async function made(berth: TestBerth): Promise<Record<string, { id: string; [field: string]: unknown }>> {
  const { fixtures: listed } = (await berth.control('GET', '/fixtures')).body
  return Object.fromEntries(
    listed.map((one: { kind: string; name: string }) => [`${one.kind} ${one.name}`, one]),
  )
}

const bearer = (key: unknown) => ({ authorization: `Bearer ${key}` })

describe('the example', () => {
  let berth: TestBerth
  beforeAll(async () => {
    berth = await testBerth({ flags: { fixtures: EXAMPLE } })
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  test('makes accounts with their plan, budget and use, and keys that open them', async () => {
    const all = await made(berth)
    const { accounts } = (await berth.control('GET', '/accounts')).body
    expect(accounts).toMatchObject([
      { id: all['account trial']?.id, label: 'Trial customer', budget_cap: 10, credits_used: 9, servers: 1 },
      { id: all['account default']?.id, budget_cap: 100, credits_used: 0, servers: 2 },
    ])
    expect(all['account default']?.api_key).toBe(berth.info.api_key)
    expect(all['account trial']?.api_key).toBe('sk_live_trial_customer_0001')
    const second = await berth.call('POST', '/servers', {}, bearer('sk_live_trial_customer_0001'))
    expect([second.status, second.body.error]).toEqual([403, 'plan_limit'])
    const { events } = (await berth.control('GET', '/events?event=quota.threshold')).body
    expect(events).toMatchObject([{ account_id: all['account trial']?.id }])
  })

  test('makes servers with their files, variables and state', async () => {
    const all = await made(berth)
    const { servers } = (await berth.call('GET', '/servers')).body
    expect(servers).toMatchObject([
      { id: all['server idle']?.id, task: 'idle', tier: 'small', status: 'sleeping' },
      { id: all['server api']?.id, task: 'shop api', tier: 'medium', region: 'eu-west', status: 'running' },
    ])
    const id = String(all['server api']?.id)
    const { files } = (await berth.call('GET', `/servers/${id}/files`)).body
    expect(files).toEqual(expect.arrayContaining(['README.md', 'logo.bin', 'source/server.ts']))
    const logo = (await berth.call('GET', `/servers/${id}/files?path=logo.bin`)).body
    expect(logo).toMatchObject({ content: 'iVBORw0KGgo=', encoding: 'base64' })
    expect((await berth.exec(id, 'echo "$DATABASE_URL"')).stdout).toBe('sqlite://shop.db\n')
    const idle = String(all['server idle']?.id)
    expect((await berth.exec(idle, 'echo "$NIGHT_JOB"')).stdout).toBe('on\n')
    await berth.call('POST', `/servers/${idle}/actions`, { action: 'stop' })
  })

  test('brings projects up as far as it says before berth is ready', async () => {
    const all = await made(berth)
    const { projects } = (await berth.call('GET', '/projects')).body
    expect(projects).toMatchObject([
      { id: all['project scratch']?.id, lifecycle: 'ephemeral', init_phase: null },
      { id: all['project waiting']?.id, init_phase: 'awaiting_secrets' },
      { id: all['project shop']?.id, name: 'Shop', init_phase: 'ready', runtime_status: 'running' },
    ])
    const shop = await fetch(String(all['project shop']?.url))
    expect(await shop.text()).toBe('Welcome to the shop')
  })

  test('makes keys with their scope, webhooks with their secret, scenarios, faults and the clock', async () => {
    const all = await made(berth)
    const reached = await berth.call('GET', '/servers', undefined, bearer('sk_live_deploy_of_the_shop'))
    expect(reached.body.servers.map(({ id }: { id: string }) => id)).toEqual([all['server api']?.id])
    const trial = await berth.call('GET', '/servers', undefined, bearer(all['key readonly-trial']?.api_key))
    expect(trial.body.servers.map(({ id }: { id: string }) => id)).toEqual([all['server trial-box']?.id])
    expect(all['webhook audit']).toMatchObject({
      url: 'https://shop.example/hooks',
      secret: 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
    })
    expect((await berth.control('GET', '/deliveries')).body.deliveries).toEqual([])
    expect((await berth.control('GET', '/scenarios')).body.scenarios).toMatchObject([{ name: 'restock' }])
    expect((await berth.control('GET', '/faults')).body.faults).toMatchObject([
      { match: { operation: 'exec.run', account_id: all['account trial']?.id }, times: 1, hits: 0 },
    ])
    expect((await berth.control('GET', '/clock')).body).toMatchObject({
      now: '2030-01-01T00:00:00.000Z',
      frozen: true,
    })
  })

  test('a reset makes all of it again, and removes the rest', async () => {
    const { id } = (await made(berth))['server api'] ?? { id: '' }
    await berth.call('DELETE', `/servers/${id}`)
    await berth.server({ task: 'beside' })
    expect((await berth.control('POST', '/reset')).status).toBe(200)
    const all = await made(berth)
    expect(all['account trial']?.api_key).toBe('sk_live_trial_customer_0001')
    const { servers } = (await berth.call('GET', '/servers')).body
    expect(servers.map(({ task }: { task: string }) => task)).toEqual(['idle', 'shop api'])
    const shop = await fetch(String(all['project shop']?.url))
    expect(await shop.text()).toBe('Welcome to the shop')
  })
})

/** A folder with an app that says which version it is. */
function app(version: string): string {
  mkdirSync(join(folder, 'app'), { recursive: true })
  const code = `Bun.serve({ port: process.env.PORT, fetch: () => new Response(\`${version} \${process.env.WORD}\`) })`
  writeFileSync(join(folder, 'app/server.ts'), code)
  return 'app'
}

/** Everything that can be fixed, one way or another. */
const declared = (word: string) => ({
  accounts: { other: { label: word, key: `sk_live_other_${word}`, budget_cap: word.length } },
  servers: {
    api: {
      task: word,
      region: word === 'first' ? 'us-west' : 'eu-west',
      files: { 'notes.txt': word },
      secrets: { WORD: word },
    },
    gone: {},
  },
  projects: {
    app: { server: 'api', name: `App ${word}`, visibility: 'public', files: { '.': { from: app(word) } } },
  },
  secrets: [{ project: 'app', values: { WORD: word } }],
  keys: {
    ci: { label: word, key: `sk_live_ci_${word}_key`, ...(word === 'first' ? { servers: ['api'] } : {}) },
  },
  webhooks: {
    hook: {
      url: `https://${word}.example/`,
      events: [word === 'first' ? 'task.created' : 'server.created'],
      secret: `whsec_${Buffer.from(word.repeat(8)).toString('base64')}`,
    },
  },
})

/** What the API shows of it, ids and all. */
async function shown(berth: TestBerth) {
  const all = await made(berth)
  const id = all['server api']?.id
  const project = (await berth.call('GET', `/projects/${all['project app']?.id}`)).body
  const { servers } = (await berth.call('GET', '/servers')).body
  return {
    all,
    files: (await berth.call('GET', `/servers/${id}/files`)).body.files,
    notes: (await berth.call('GET', `/servers/${id}/files?path=notes.txt`)).body.content,
    server: servers.find((one: { id: string }) => one.id === id),
    count: servers.length,
    says: await (await fetch(project.url)).text(),
    name: project.name,
    keys: (await berth.call('GET', '/keys')).body.keys,
    webhooks: (await berth.call('GET', '/webhooks')).body.webhooks,
    accounts: (await berth.control('GET', '/accounts')).body.accounts,
  }
}

test('further starts make nothing twice, fix what differs, make again what is gone, and leave the rest', async () => {
  const dataDir = mkdtempSync(join(folder, 'data-'))
  const start = (word: string) => testBerth({ dataDir, flags: { fixtures: fixtures(declared(word)) } })

  const ids = (all: object) => Object.entries(all).map(([name, { id }]) => [name, id])
  let before: Awaited<ReturnType<typeof shown>>
  {
    await using berth = await start('first')
    before = await shown(berth)
    expect(before).toMatchObject({ notes: 'first', says: 'first first', name: 'App first', count: 2 })
    expect(before.keys.length).toBe(2)
  }
  {
    await using berth = await start('first')
    const again = await shown(berth)
    expect(ids(again.all)).toEqual(ids(before.all))
    expect(again.count).toBe(2)
    expect(again.says).toBe('first first')
    // What is done beside the file.
    const id = String(again.all['server api']?.id)
    await berth.call('PUT', `/servers/${id}/files`, { path: 'beside.txt', content: 'stays' })
    await berth.call('PUT', `/servers/${id}/files`, { path: 'notes.txt', content: 'changed' })
    await berth.call('DELETE', `/servers/${again.all['server gone']?.id}`)
    await berth.server({ task: 'beside' })
    await berth.call('DELETE', `/webhooks/${again.all['webhook hook']?.id}`)
  }
  {
    await using berth = await start('second')
    const fixed = await shown(berth)
    expect(fixed).toMatchObject({
      notes: 'second',
      says: 'second second',
      name: 'App second',
      count: 3,
      server: { task: 'second', region: 'eu-west' },
      webhooks: [{ url: 'https://second.example/', events: ['server.created'] }],
    })
    expect(fixed.files).toContain('beside.txt')
    const same = ['account other', 'server api', 'project app', 'key ci'] as const
    for (const name of same) expect([name, fixed.all[name]?.id]).toEqual([name, before.all[name]?.id])
    for (const name of ['server gone', 'webhook hook'])
      expect([name, fixed.all[name]?.id]).not.toEqual([name, before.all[name]?.id])
    expect(fixed.keys.map(({ label }: { label: string }) => label).sort()).toEqual(['First key', 'second'])
    expect(fixed.accounts[0]).toMatchObject({ label: 'second', budget_cap: 6 })
    const status = async (key: string) => (await berth.call('GET', '/servers', undefined, bearer(key))).status
    expect([await status('sk_live_ci_first_key'), await status('sk_live_ci_second_key')]).toEqual([401, 200])
    expect([await status('sk_live_other_first'), await status('sk_live_other_second')]).toEqual([401, 200])
    const { servers } = (await berth.call('GET', '/servers', undefined, bearer('sk_live_ci_second_key'))).body
    expect(servers).toHaveLength(3)
  }
}, 120_000)

test('an account is exhausted when berth is ready, also when it was before', async () => {
  const dataDir = mkdtempSync(join(folder, 'capped-'))
  const path = fixtures({
    accounts: { poor: { key: 'sk_live_poor_customer', budget_cap: 5, credits_used: 5 } },
    servers: { box: { account: 'poor' } },
  })
  for (const round of ['first', 'second']) {
    await using berth = await testBerth({ dataDir, flags: { fixtures: path } })
    const poor = bearer('sk_live_poor_customer')
    const { servers } = (await berth.call('GET', '/servers', undefined, poor)).body
    expect([round, servers.map(({ status }: { status: string }) => status)]).toEqual([round, ['sleeping']])
    const goal = { goal: 'complete: x' }
    expect((await berth.call('POST', `/servers/${servers[0].id}/tasks`, goal, poor)).status).toBe(402)
    // Gone, it is made again although the account was exhausted.
    await berth.call('DELETE', `/servers/${servers[0].id}`, undefined, poor)
  }
})

test('time passes when all is there, at the start and after a reset', async () => {
  const path = fixtures({
    clock: { freeze: true, set: '2031-05-01T00:00:00Z', advance: '2h' },
    servers: { box: { tier: 'medium' } },
  })
  await using berth = await testBerth({ flags: { fixtures: path } })
  for (const _ of [1, 2]) {
    const { servers } = (await berth.call('GET', '/servers')).body
    expect(servers).toMatchObject([{ creditsUsed: 4, createdAt: '2031-05-01T00:00:00.000Z' }])
    expect((await berth.control('GET', '/clock')).body.now).toBe('2031-05-01T02:00:00.000Z')
    await berth.control('POST', '/reset')
  }
})

test('a webhook leads to an inbox of the instance, whatever port that has', async () => {
  const dataDir = mkdtempSync(join(folder, 'inbox-'))
  const secret = `whsec_${Buffer.from('0123456789abcdef01234567').toString('base64')}`
  const path = fixtures({ webhooks: { hook: { inbox: 'mine', events: ['server.created'], secret } } })
  const flags = { fixtures: path, 'allow-local-webhooks': true }
  for (const count of [1, 2]) {
    await using berth = await testBerth({ dataDir, flags })
    const server = await berth.server()
    const { body } = await berth.control('GET', `/wait?inbox=mine&count=${count}`)
    expect(body.entries[0]).toMatchObject({ verified: true, json: { server_id: server } })
    expect((await berth.call('GET', '/webhooks')).body.webhooks).toHaveLength(1)
  }
})

test('faults apply once everything exists, with new counts at each start, beside faults set otherwise', async () => {
  const dataDir = mkdtempSync(join(folder, 'faults-'))
  const path = fixtures({
    accounts: { other: { key: 'sk_live_other_with_faults' } },
    servers: { box: {} },
    faults: [
      {
        match: { operation: 'servers.list', account: 'other' },
        effect: { error: { status: 503 } },
        times: 1,
      },
      { match: { operation: 'servers.create' }, effect: { backend: 'fail' } },
    ],
  })
  for (const count of [2, 3]) {
    await using berth = await testBerth({ dataDir, flags: { fixtures: path } })
    const list = async (key: string) => (await berth.call('GET', '/servers', undefined, bearer(key))).status
    expect(await list(berth.info.api_key)).toBe(200)
    expect([await list('sk_live_other_with_faults'), await list('sk_live_other_with_faults')]).toEqual([
      503, 200,
    ])
    expect((await berth.call('POST', '/servers')).status).toBe(502)
    expect((await berth.control('GET', '/faults')).body.faults).toHaveLength(count)
    await berth.control('POST', '/faults', { match: { operation: 'keys.list' }, effect: { delay_ms: 1 } })
  }
})
