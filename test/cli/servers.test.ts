import { expect, test } from 'bun:test'
import { run, serveForTests } from './command.ts'

const berth = await serveForTests()

const json = (...args: string[]) => berth.json('servers', ...args)

test('a server is provisioned, shown, changed, stopped, started and deleted from the terminal', async () => {
  const { id, ...created } = await json(
    'create',
    '--task',
    'a label',
    '--tier',
    'medium',
    '--region',
    'us-west',
  )
  expect(created).toMatchObject({ url: null, status: 'running', tier: 'medium' })
  const { server } = await json('get', id)
  expect(server).toMatchObject({ id, task: 'a label', tier: 'medium', region: 'us-west' })
  expect(await json('update', id, '--task', '', '--region', 'eu-west')).toMatchObject({
    server: { id, task: '', region: 'eu-west' },
  })
  expect(await json('stop', id)).toEqual({ id, status: 'sleeping' })
  expect(await json('start', id)).toEqual({ id, status: 'running' })
  expect(await json('restart', id)).toEqual({ id, status: 'running' })
  expect((await json('list')).servers.map((one: { id: string }) => one.id)).toContain(id)
  expect(await json('delete', id)).toEqual({ id, deleted: true })
  const gone = await berth.run(['servers', 'get', id])
  expect(gone).toMatchObject({ exitCode: 1, stdout: '' })
  expect(gone.stderr).toMatch(/^berth: .+ \(not_found\)\n$/)
})

test('a label is given as a word or with --task, once', async () => {
  const { id } = await json('create', 'shop', '--tier', 'small')
  expect((await json('get', 'shop')).server).toMatchObject({ id, task: 'shop' })
  const twice = await berth.run(['servers', 'create', 'a', '--task', 'b'])
  expect([twice.exitCode, twice.stderr]).toEqual([2, expect.stringContaining('Name the server once')])
  await json('delete', id)
})

test('what was created is printed as its id alone with -q, for scripts', async () => {
  const created = await berth.run(['servers', 'create', 'quiet', '-q'])
  expect(created).toMatchObject({ exitCode: 0, stderr: '' })
  expect(created.stdout).toBe(`${(await json('get', 'quiet')).server.id}\n`)
  await json('delete', 'quiet')
})

test('people get sentences and an aligned table, plain "berth servers" included', async () => {
  expect((await berth.run(['servers'])).stdout).toBe(
    'No servers yet. Provision one with "berth servers create".\n',
  )
  const created = await berth.run(['servers', 'create', '--task', 'wide 漢字 label'])
  const id = /^Provisioned (srv_\w+) \(small, running\)\.\n$/.exec(created.stdout)?.[1] ?? ''
  await berth.run(['servers', 'create', '--task', 'x'])
  const { stdout } = await berth.run(['servers'])
  const lines = stdout.trimEnd().split('\n')
  expect(lines[0]).toMatch(/^ID +LABEL +TIER +STATUS +REGION +CREDITS +STORAGE +CREATED +LAST USED +URL$/)
  expect(lines.length).toBe(3)
  const columns = new Set(lines.slice(1).map((line) => Bun.stringWidth(line.slice(0, line.indexOf('small')))))
  expect([...columns]).toEqual([lines[0]?.indexOf('TIER') ?? -1])
  expect((await berth.run(['servers', 'get', id])).stdout).toContain('Status   running\n')
  expect((await berth.run(['servers', 'stop', id])).stdout).toBe(`${id} is sleeping.\n`)
  expect((await berth.run(['servers', 'rm', id])).stdout).toBe(`Deleted ${id}.\n`)
})

test('a label cannot control the terminal that lists it', async () => {
  const { id } = await json('create', '--task', 'red \u001b[31m\nline')
  expect((await berth.run(['servers', 'get', id])).stdout).toContain('Label    red �[31m�line\n')
  await json('delete', id)
})

test('says where a label belongs that is given as an option', async () => {
  const { exitCode, stderr } = await run(['servers', 'create', '--name', 'shop'])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('berth servers create LABEL')])
})

test('a label that cannot be a name is refused or reported, and a long one is cut in a list of candidates', async () => {
  const long = 'twin '.repeat(100).trim()
  const create = (label: string) => berth.run(['servers', 'create', label])
  const idOf = (stdout: string) => /srv_\w+/.exec(stdout)?.[0] ?? 'none'
  for (const blank of [' ', '\u200b \t']) {
    const { exitCode, stderr } = await create(blank)
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: 'berth: A label needs a character that can be seen; "" is none.\n',
    })
  }
  const first = await create(long)
  const second = await create(long)
  expect(first.stdout).not.toContain('that label too')
  expect(second.stdout).toContain(`${idOf(first.stdout)} has that label too`)
  const { stderr } = await berth.run(['servers', 'get', long])
  expect(stderr.slice(stderr.indexOf('may mean'))).toContain('twin twin twin twin twin twin twin twin…)')
  const renamed = await berth.run(['servers', 'rename', idOf(second.stdout), 'srv_other'])
  expect(renamed.stdout).toContain('is now called srv_other.\nCommands may take that label for an id')
  for (const { stdout } of [first, second]) await berth.run(['servers', 'delete', idOf(stdout)])
})
