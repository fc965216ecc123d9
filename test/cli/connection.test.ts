import { expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { run, serve, serveForTests, temporaryFolder } from './command.ts'

const berth = await serveForTests()

const LIST = ['servers', 'list', '--json']

test('a command finds the instance of the nearest parent folder by itself', async () => {
  const below = join(berth.cwd, 'a/b')
  mkdirSync(below, { recursive: true })
  const { exitCode, stdout } = await run(LIST, { cwd: below })
  expect({ exitCode, body: JSON.parse(stdout) }).toEqual({
    exitCode: 0,
    body: { servers: expect.any(Array) },
  })
})

test('a command takes the instance from BERTH_DATA, BERTH_BASE_URL and BERTH_API_KEY, --base-url, --api-key or --data', async () => {
  const { base_url, api_key, data_dir } = berth.info
  const ways = [
    { env: { BERTH_DATA: data_dir } },
    { env: { BERTH_BASE_URL: `${base_url}/`, BERTH_API_KEY: api_key } },
    { args: ['--base-url', base_url, '--api-key', api_key] },
    { args: ['--base-url', base_url.replace('http://', ''), '--api-key', api_key] },
    { args: ['--data', data_dir] },
  ]
  for (const { args = [], env = {} } of ways) {
    const { exitCode, stderr } = await run([...LIST, ...args], { env })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  }
})

test('a flag beats the environment, the environment beats the folder', async () => {
  const env = { BERTH_BASE_URL: 'http://127.0.0.1:1', BERTH_API_KEY: 'sk_live_other' }
  expect((await berth.run(LIST, { env })).stderr).toContain('Nothing answers at http://127.0.0.1:1')
  const { base_url, api_key, data_dir } = berth.info
  for (const args of [
    ['--base-url', base_url, '--api-key', api_key],
    ['--data', data_dir],
  ])
    expect((await berth.run([...LIST, ...args], { env })).exitCode).toBe(0)
})

test('with nothing running the sentence names folder and remedy', async () => {
  using folder = temporaryFolder()
  const { exitCode, stdout, stderr } = await run(['servers'], {
    cwd: folder.path,
    env: { XDG_STATE_HOME: folder.path },
  })
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toBe(
    `berth: No berth runs on ${folder.path}/.berth. Start one with "berth serve", or name one with --base-url or --data, or sign in to one with "berth login URL".\n`,
  )
})

test('without an instance of the directory, the only one is used to read and to create, but not to destroy', async () => {
  using folder = temporaryFolder()
  const env = { XDG_STATE_HOME: folder.path }
  const elsewhere = { cwd: folder.path, env }
  // An instance is listed a moment after its ready line.
  const isListed = (dataDir: string) =>
    until(async () => (await run(['list'], { env })).stdout.includes(dataDir), 'it is listed')
  await using one = await serve([], { env })
  const { data_dir, base_url } = one.info
  await isListed(data_dir)
  const none = `No berth runs on ${folder.path}/.berth.`
  const only = `${none} Using the only one that runs, on ${data_dir}, at ${base_url}.\n`
  expect(await run(['deployments', '--json'], elsewhere)).toMatchObject({
    exitCode: 0,
    stdout: '{"deployments":[]}\n',
    stderr: only,
  })
  const created = await run(['servers', 'create', 'shop', '-q'], elsewhere)
  expect(created).toMatchObject({ exitCode: 0, stderr: only })
  expect((await run(['whoami'], elsewhere)).stderr).toBe(only)
  expect((await run(['faults'], elsewhere)).stderr).toBe(only)

  const remedy = `BERTH_DATA=${data_dir}`
  for (const command of [
    ['reset', '-y'],
    ['servers', 'delete', '-y'],
  ]) {
    expect(await run(command, elsewhere)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        `berth: ${none} One runs on ${data_dir}, at ${base_url}: for all commands of this shell, export ${remedy}\n`,
      ),
    })
  }
  expect((await run(['servers', '-q'], elsewhere)).stdout).toBe(created.stdout)
  expect((await run(['stop'], elsewhere)).stderr).toBe(
    `berth: ${none} One runs on ${data_dir}, at ${base_url}: berth stop --data ${data_dir}\n`,
  )
  expect((await run(['servers', 'delete', 'shop', '-y'], elsewhere)).stderr).toBe(only)
  const named = await run(['servers'], { cwd: folder.path, env: { ...env, BERTH_DATA: data_dir } })
  expect(named).toMatchObject({ exitCode: 0, stderr: '' })
  expect((await run(['servers', '--data', folder.path], elsewhere)).exitCode).toBe(1)

  await using other = await serve([], { env })
  expect(other.info.pid).not.toBe(one.info.pid)
  await isListed(other.info.data_dir)
  expect((await run(['servers'], elsewhere)).stderr).toEndWith(
    ' 2 run on other directories: "berth list" shows them.\n',
  )
})

test('a shortened key, or one with a line break, is named as none', async () => {
  for (const key of ['sk_live_…ab12', 'sk_live_one\nsk_live_two', '']) {
    const { stderr, exitCode } = await berth.run([...LIST, '--api-key', key])
    expect(stderr).toStartWith('berth: --api-key holds no API key: ')
    expect(exitCode).toBe(2)
  }
  const { stderr } = await berth.run(['faults'], { env: { BERTH_ADMIN_TOKEN: 'a b' } })
  expect(stderr).toStartWith('berth: BERTH_ADMIN_TOKEN holds no admin token: ')
})

test('reports an address at which nothing listens, or an app', async () => {
  const at = ['--base-url', `http://127.0.0.1:${freePort()}`]
  expect((await run([...LIST, ...at], { cwd: berth.cwd })).stderr).toStartWith(
    `berth: Nothing answers at ${at[1]}. Start it with "berth serve", or correct the address`,
  )
  const notFound = { error: 'not_found', message: 'There is no such page.' }
  await using app = Bun.serve({ port: 0, fetch: () => Response.json(notFound, { status: 404 }) })
  const { stderr } = await run([...LIST, '--base-url', app.url.origin, '--api-key', 'sk_live_x'])
  expect(stderr).toContain(
    "does not speak berth's API (HTTP 404). Check the address: it may be that of an app.",
  )
})

test("localhost is the instance of the data folder, at the folder's own address", async () => {
  const url = berth.info.base_url.replace('127.0.0.1', 'localhost')
  expect((await berth.run([...LIST, '--base-url', url])).exitCode).toBe(0)
})

test('reports a dead instance as not running, without its key, and a named one as not responding', async () => {
  using folder = temporaryFolder()
  const data = join(folder.path, '.berth')
  mkdirSync(data)
  writeFileSync(join(data, 'lock'), '')
  writeFileSync(join(data, 'instance.json'), '{"pid":1,"base_url":"http://127.0.0.1:1"}')
  writeFileSync(join(data, 'credentials.json'), '{"api_key":"sk_live_kept_in_folder"}')
  const env = { XDG_STATE_HOME: folder.path }
  const found = await run(['servers'], { cwd: folder.path, env })
  expect(found.exitCode).toBe(1)
  expect(found.stderr).toContain(`No berth runs on ${data}.`)
  const named = await run(['servers', '--data', data], { env })
  expect(named.exitCode).toBe(1)
  expect(named.stderr).toMatch(/^berth: Nothing answers at http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)\. .*\n$/)
  for (const { stderr } of [found, named]) expect(stderr).not.toContain('sk_live_')
})

/** Ways to have a data directory look as if a berth ran on it: its lock, and the process that it names. */
const DISGUISES: readonly {
  disguise: string
  lock: ((path: string) => void) | null
  pid: () => number
}[] = [
  { disguise: 'no lock', lock: null, pid: () => process.pid },
  {
    disguise: 'a lock that is no database',
    lock: (path) => writeFileSync(path, 'locked'),
    pid: () => process.pid,
  },
  {
    disguise: 'a link to the lock of a berth that runs',
    lock: (path) => symlinkSync(join(berth.info.data_dir, 'lock'), path),
    pid: () => berth.info.pid,
  },
  {
    disguise: 'the process of a berth that runs',
    lock: (path) => writeFileSync(path, ''),
    pid: () => berth.info.pid,
  },
]

test.each(DISGUISES)(
  'a data directory that came with foreign files gets no key, no secret and no code: $disguise',
  async ({ lock, pid }) => {
    const seen: string[] = []
    await using foreign = Bun.serve({
      port: 0,
      fetch(request) {
        seen.push(request.url)
        return Response.json({ servers: [], projects: [] })
      },
    })
    using folder = temporaryFolder()
    const data = join(folder.path, '.berth')
    mkdirSync(data)
    lock?.(join(data, 'lock'))
    const instance = { pid: pid(), base_url: foreign.url.origin }
    writeFileSync(join(data, 'instance.json'), JSON.stringify(instance))
    writeFileSync(
      join(data, 'credentials.json'),
      '{"api_key":"sk_live_foreign","admin_token":"admin_foreign"}',
    )
    writeFileSync(join(folder.path, 'index.html'), '')
    const env = { XDG_STATE_HOME: folder.path, BERTH_API_KEY: 'sk_live_own' }
    for (const args of [
      ['servers'],
      ['secrets', 'set', 'TOKEN=own'],
      ['projects', 'push'],
      ['faults'],
      ['env'],
      ['login', '--no-browser'],
    ])
      expect([args, await run(args, { cwd: folder.path, env })]).toEqual([
        args,
        expect.objectContaining({ exitCode: 1, stdout: '' }),
      ])
    expect(seen).toEqual([])
  },
)

test("the folder's key goes to the folder's own instance only", async () => {
  const seen: (string | null)[] = []
  await using other = Bun.serve({
    port: 0,
    fetch(request) {
      seen.push(request.headers.get('authorization'))
      return Response.json({ servers: [] })
    },
  })
  const { exitCode, stderr } = await berth.run(['servers', '--base-url', other.url.href])
  expect(exitCode).toBe(1)
  expect(stderr).toContain('No API key for')
  expect(seen).toEqual([])
})

test('a redirect is not followed, so the key stays where it belongs', async () => {
  const seen: string[] = []
  await using target = Bun.serve({
    port: 0,
    fetch(request) {
      seen.push(request.url)
      return Response.json({ servers: [] })
    },
  })
  await using source = Bun.serve({ port: 0, fetch: () => Response.redirect(target.url.href) })
  const { exitCode, stderr } = await run(['servers', '--base-url', source.url.href, '--api-key', 'sk_live_x'])
  expect(exitCode).toBe(1)
  expect(stderr).toContain("does not speak berth's API (HTTP 302)")
  expect(seen).toEqual([])
})

test('a proxy of the environment is not used for this machine', async () => {
  const proxy = 'http://127.0.0.1:1'
  const { exitCode, stderr } = await berth.run(LIST, { env: { HTTP_PROXY: proxy, http_proxy: proxy } })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
})

test('a refusal of the API is one sentence with its code, and never shows the key', async () => {
  const refused = await berth.run([...LIST, '--api-key', 'sk_live_wrong_wrong_wrong'])
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toMatch(/^berth: .+ \(missing_or_invalid_api_key\)\n$/)
  expect(refused.stderr).not.toContain('sk_live_wrong')
})

test('reports a response that is not from the API', async () => {
  await using page = Bun.serve({ port: 0, fetch: () => new Response('<html>', { status: 200 }) })
  const { exitCode, stderr } = await run(['servers', '--base-url', page.url.href, '--api-key', 'sk_live_x'])
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: `berth: The program at ${page.url.origin} does not speak berth's API (HTTP 200). Check the address: it may be that of an app.\n`,
  })
})

test('reports a stream whose events are not JSON in a sentence', async () => {
  const headers = { 'content-type': 'text/event-stream' }
  await using page = Bun.serve({
    port: 0,
    fetch: () => new Response('event: stdout\ndata: <html>\n\n', { headers }),
  })
  const connection = ['--base-url', page.url.href, '--api-key', 'sk_live_x']
  const { exitCode, stderr } = await run(['exec', 'srv_1', ...connection, '--', 'true'])
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: `berth: The program at ${page.url.origin} does not speak berth's API (HTTP 200). Check the address: it may be that of an app.\n`,
  })
})

test('ids and paths reach the API as they were typed', async () => {
  const seen: string[] = []
  await using other = Bun.serve({
    port: 0,
    fetch(request) {
      seen.push(`${request.method} ${request.url.slice(other.url.href.length - 1)}`)
      const servers = [{ id: 'srv/1?a=b#c', task: '', status: 'running' }]
      return Response.json(request.method === 'GET' ? { servers } : { path: 'x', deleted: true })
    },
  })
  const connection = ['--base-url', other.url.href, '--api-key', 'sk_live_x']
  await run(['files', 'delete', 'srv/1?a=b#c', 'a b&c=d', ...connection])
  // The first looks for a server of that name.
  expect(seen).toEqual(['GET /servers', 'DELETE /servers/srv%2F1%3Fa%3Db%23c/files?path=a+b%26c%3Dd'])
})

test('what a refusal quotes cannot steer the terminal', async () => {
  const message = 'no \u001b[2J\u001b]0;title\u0007such \u202ething\u009b1m'
  const body = { error: 'bad_request', message }
  await using other = Bun.serve({ port: 0, fetch: () => Response.json(body, { status: 400 }) })
  const { stderr } = await run(['servers', '--base-url', other.url.href, '--api-key', 'sk_live_x'])
  expect(stderr).toBe('berth: no such �thing�1m (bad_request)\n')
})
