import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { processesOf, until } from '../../support/processes.ts'
import { serve } from '../../support/serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-refusals-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const dataDir = join(folder, 'data')

/** Returns the message of a start that this file stops. */
async function refusal(content: object, flags: Record<string, unknown> = {}): Promise<string> {
  const path = join(folder, 'fixtures.json')
  writeFileSync(path, JSON.stringify(content, null, 2))
  try {
    await using _ = await testBerth({ dataDir, flags: { fixtures: path, ...flags } })
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it has started')
}

/** What there is on the data folder. */
async function state(): Promise<object> {
  await using berth: TestBerth = await testBerth({ dataDir })
  const all = ['/servers', '/projects', '/keys', '/webhooks'].map(async (path) => {
    const body = (await berth.call('GET', path)).body
    return JSON.stringify(body, (name, value) => (name === 'last_used_at' ? undefined : value))
  })
  const accounts = (await berth.control('GET', '/accounts')).body.accounts.length
  const listed = (await berth.control('GET', '/fixtures')).body.fixtures
  return { all: await Promise.all(all), accounts, listed }
}

/** Much that is good stands before each mistake: nothing of it may be left. */
const GOOD = {
  accounts: { other: { budget_cap: 5 } },
  servers: { api: { files: { 'a.txt': 'a' } }, second: { account: 'other' } },
  keys: { k: { servers: ['api'] } },
}
const withServer = (server: object) => ({ ...GOOD, servers: { ...GOOD.servers, wrong: server } })
const withProject = (project: object) => ({ ...GOOD, projects: { wrong: { server: 'api', ...project } } })

test('a value that the API would refuse stops the start with its place in the file, and changes nothing', async () => {
  const before = await state()
  const cases: [object, Record<string, unknown>, RegExp][] = [
    [
      withServer({ tier: 'large' }),
      { plan: { tiers: ['small'] } },
      /line 17, .*wrong\.tier": the plan of the/,
    ],
    [
      withServer({}),
      { plan: { servers: 1 } },
      /line 16, .*wrong": the plan of the account "default" allows 1/,
    ],
    [
      withServer({ files: { b: 'x'.repeat(1_000_001) } }),
      { plan: { storage_gb: { small: 0.001 } } },
      /has room for 1000000/,
    ],
    [
      { ...GOOD, accounts: { other: { budget_cap: 0 } } },
      {},
      /"servers\.second": .*has used 0 of its budget of 0/,
    ],
    [withServer({ image: 'python:3.13' }), {}, /"servers\.\w+\.image": .*have no image/],
    [withProject({ template: 'none' }), {}, /wrong\.template": expected one of static-site, .*got "none"/],
    [withProject({}), { plan: { projects: { small: 0 } } }, /allows 0 projects on a small server/],
    [{ ...GOOD, webhooks: { w: { url: 'http://127.0.0.1:9/' } } }, {}, /"webhooks\.w\.url": /],
    [withProject({ source: { type: 'git', url: '/nowhere' } }), {}, /"projects\.wrong": /],
    [
      withProject({ files: { 'berth.json': '{"start":"exit 3"}' } }),
      {},
      /came to "failed", not to "ready".*/,
    ],
    [withProject({ files: { 'index.html': 'x' }, until: 'failed' }), {}, /came to "ready", not to "failed"/],
  ]
  for (const [content, flags, reason] of cases) {
    const said = await refusal(content, flags)
    expect(said).toMatch(/^(?:.*the executable did not start.*: berth: )?The file .*fixtures\.json, line \d+/)
    expect(said).toMatch(reason)
    expect(await state()).toEqual(before)
  }
}, 120_000)

test('a failed bring-up reports the end of the log', async () => {
  const files = { 'berth.json': JSON.stringify({ start: 'echo no database; exit 3' }) }
  expect(await refusal(withProject({ files }))).toContain('no database')
})

test('a signal ends a start that waits for a project, and nothing is left running', async () => {
  const data = join(folder, 'stopped')
  const path = join(folder, 'slow.json')
  const files = { 'berth.json': JSON.stringify({ install: 'touch begun; sleep 1000', start: 'true' }) }
  writeFileSync(path, JSON.stringify(withProject({ files })))
  const { child, stderr } = serve(['--port', '0', '--data', data, '--fixtures', path])
  const begun = () => [...new Bun.Glob('servers/*/**/begun').scanSync({ cwd: data })].length > 0
  await until(() => existsSync(data) && begun(), 'the install has begun', 20_000)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await stderr).not.toContain('slow.json')
  expect(processesOf(data)).toEqual([])
}, 120_000)

test('what is there and cannot become what the file says stops the start', async () => {
  const project = { server: 'api', template: 'static-site' }
  const content = { servers: { api: {} }, projects: { p: project } }
  const path = join(folder, 'first.json')
  writeFileSync(path, JSON.stringify(content))
  {
    await using _ = await testBerth({ dataDir, flags: { fixtures: path } })
  }
  expect(await refusal({ servers: { api: { tier: 'large' } } })).toContain('is small, which never changes')
  const moved = { accounts: { other: {} }, servers: { api: { account: 'other' } } }
  expect(await refusal(moved)).toContain('belongs to another account')
  const elsewhere = { ...content, projects: { p: { server: 'api', template: 'bun-api' } } }
  expect(await refusal(elsewhere)).toContain('"projects.p.template": the project prj_')
}, 120_000)
