import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serveForTests, temporaryFolder } from './command.ts'

const berth = await serveForTests(['--project-ports', '5560-5569'])

/** Runs a command that must succeed, and returns what it printed. */
async function output(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await berth.run(args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

/** Runs a command that must fail, and returns its message. */
async function failure(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await berth.run(args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  return stderr
}

async function provision(label: string): Promise<string> {
  return JSON.parse(await output('servers', 'create', '--task', label, '--json')).id
}

const remove = (...ids: string[]) => Promise.all(ids.map((id) => berth.run(['servers', 'delete', id])))

test('the only server is meant where none is named, whatever else is given', async () => {
  expect(await failure('exec', '--', 'pwd')).toBe(
    'berth: There is no server yet. Provision one with "berth servers create".\n',
  )
  const id = await provision('alone')
  expect(await output('exec', '--', 'echo', 'a  b')).toBe('a  b\n')
  expect(await output('exec', 'echo one word')).toBe('one word\n')
  expect(await output('exec', '--cwd', '.', '--env', 'A=b', '--', 'sh', '-c', 'echo $A -- x')).toBe(
    'b -- x\n',
  )
  expect(await output('files', 'list')).toBe('')
  const written = await berth.run(['files', 'write', 'a.txt'], { stdin: Buffer.from('text') })
  expect(written.stdout).toBe('Wrote a.txt (4 bytes).\n')
  expect(await output('files', 'read', 'a.txt')).toBe('text')
  expect(await output('servers', 'get')).toContain(id)
  expect(await output('servers', 'rename', 'renamed')).toBe(`${id} is now called renamed.\n`)
  expect(await output('faults', 'server', 'slow_exec', '--delay', '1ms')).toContain(id)
  expect(await output('servers', 'delete')).toBe(`Deleted ${id}.\n`)
})

test('reports the name of a project in place of a server, with what to name', async () => {
  const id = await provision('alone')
  const { stdout } = await berth.run(['projects', 'create', '--name', 'shop', '--json'])
  const project = JSON.parse(stdout)
  expect(await failure('servers', 'stop', 'shop')).toBe(
    `berth: No server has "shop" as its id or label. "berth servers" lists those there are. ${project.id} is a project of that name: name its server instead, ${id}, where its files are in projects/.\n`,
  )
  await remove(id)
})

test('exec, cp and sync take the name of a project for its directory, and a server of that name before it', async () => {
  const id = await provision('alone')
  await berth.run(['files', 'write', 'projects/shop/a.txt'], { stdin: Buffer.from('in the project') })
  await berth.run(['projects', 'create', '--name', 'shop', '--server', id])
  const { slug } = JSON.parse(await output('projects', 'get', 'shop', '--json'))
  await berth.run(['exec', id, `mkdir -p projects/${slug}`])
  expect(await output('exec', 'shop', 'pwd')).toBe(`/workspace/projects/${slug}\n`)
  expect(await output('exec', 'shop', '--cwd', 'projects', 'pwd')).toBe('/workspace/projects\n')
  expect((await berth.run(['cp', '-', 'shop:b.txt'], { stdin: Buffer.from('sent') })).exitCode).toBe(0)
  expect(await output('exec', '--server', id, `cat projects/${slug}/b.txt`)).toBe('sent')
  expect(await output('cp', 'shop:/workspace/projects/shop/a.txt', '-')).toBe('in the project')
  await berth.run(['servers', 'rename', 'shop'])
  expect(await output('exec', 'shop', 'pwd')).toBe('/workspace\n')
  await remove(id)
})

describe('with several servers', () => {
  let [web, twin, other]: [string, string, string] = ['', '', '']
  beforeAll(async () => {
    web = await provision('web')
    twin = await provision('twin')
    other = await provision('twin')
  })
  afterAll(() => remove(web, twin, other))

  test('one is named by its label, its id, or the beginning of its id, everywhere', async () => {
    const beginning = uniqueBeginning(web, [twin, other])
    for (const name of ['web', web, beginning, beginning.replace('srv_', ''), beginning.toUpperCase()])
      expect(await output('exec', name, '--', 'echo', 'here')).toBe('here\n')
    expect(await output('exec', '--server', 'web', '--', 'echo', 'here')).toBe('here\n')
    expect(await output('exec', '-s', 'web', 'echo here')).toBe('here\n')
    expect(await output('servers', 'stop', 'web')).toBe(`${web} is sleeping.\n`)
    expect(await output('tasks', '--server', 'web')).toContain('No tasks yet')
    expect(await output('servers', 'network', 'web')).toContain(web)
    const key = JSON.parse(await output('keys', 'create', 'scoped', '--servers', 'web', '--json'))
    expect(key.allowed_server_ids).toEqual([web])
    expect(await output('keys', 'delete', 'scoped')).toBe(`Deleted ${key.id}.\n`)
  })

  test('an ambiguous name and none at all do nothing, and the candidates are listed', async () => {
    const ambiguous = await failure('servers', 'delete', 'twin')
    const none = await failure('servers', 'stop')
    const line = (id: string, label: string, state = 'running') =>
      expect.stringMatching(new RegExp(`^  ${id}  \\(${label}\\) +${state}, created (?:now|\\d+s ago)$`))
    expect(ambiguous.split('\n')).toEqual([
      'berth: "twin" may mean 2 servers. Name the server by its id.',
      line(other, 'twin'),
      line(twin, 'twin'),
      '',
    ])
    expect(none.split('\n')).toEqual([
      'berth: There are 3 servers. Say which one is meant with --server SERVER, or choose one for this directory with "berth use SERVER".',
      line(other, 'twin'),
      line(twin, 'twin'),
      line(web, 'web', 'sleeping'),
      '',
    ])
    for (const command of ['cp', 'sync'])
      expect(await failure(command, '.', ':')).toStartWith(
        'berth: There are 3 servers. Say which one is meant as SERVER:PATH, or choose',
      )
    expect(await failure('servers', 'delete', 'srv_')).toStartWith(
      'berth: "srv_" may mean 3 servers. Name the server by its id, or by more of it.\n',
    )
    expect(await failure('exec', 'unknown', '--', 'true')).toContain(
      'No server has "unknown" as its id or label',
    )
    const listed = JSON.parse(await output('servers', '--json')).servers
    expect(listed.map(({ id }: { id: string }) => id)).toEqual([other, twin, web])
  })

  test('a label wins over the beginning of the id of another', async () => {
    const label = web.replace('srv_', '').slice(0, 4)
    const labelled = await provision(label)
    expect(await output('servers', 'get', label)).toContain(labelled)
    await remove(labelled)
  })

  test('says how the server is named when an argument was taken for it', async () => {
    const hint = 'If "a.txt" is not the server, name that with --server SERVER.'
    const said = await failure('files', 'write', 'a.txt', 'b.txt')
    expect(said).toContain('No server has "a.txt" as its id or label')
    expect(said).toContain(hint)
    expect(await failure('files', 'list', 'a.txt')).not.toContain('--server')
    expect(await failure('files', 'read', '--server', 'a.txt', 'b.txt')).not.toContain('--server')
  })

  test('a server is not named twice', async () => {
    const { exitCode, stderr } = await berth.run(['files', 'write', 'a', 'b', 'c', '--server', 'web'])
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2 })
  })

  test('reports a missing command when only an id is given', async () => {
    const { exitCode, stderr } = await berth.run(['exec', web])
    expect(exitCode).toBe(2)
    expect(stderr).toContain("missing required argument 'COMMAND'")
  })

  test('berth use chooses one for a directory and below, on this instance alone', async () => {
    using home = temporaryFolder()
    const below = join(berth.cwd, 'a/b')
    mkdirSync(below, { recursive: true })
    const env = { XDG_CONFIG_HOME: home.path }
    const inDirectory = async (cwd: string, ...args: string[]) => (await berth.run(args, { cwd, env })).stdout
    expect((await berth.run(['use'], { env })).stderr).toContain('No server is chosen here.')
    expect(await inDirectory(berth.cwd, 'use', 'web')).toBe(
      `Commands in ${berth.cwd} now mean ${web} (web).\n`,
    )
    expect(JSON.parse(await inDirectory(below, 'use', '--json'))).toEqual({
      server_id: web,
      directory: berth.cwd,
    })
    expect(await inDirectory(below, 'servers', 'get')).toContain(web)
    expect(await inDirectory(below, 'use', twin)).toContain(twin)
    expect(await inDirectory(below, 'servers', 'get')).toContain(twin)
    expect(await inDirectory(join(berth.cwd, 'a'), 'servers', 'get')).toContain(web)
    expect(await inDirectory(below, 'use', '--none')).toBe(`${twin} is not meant here any more.\n`)
    expect(await inDirectory(below, 'servers', 'get')).toContain(web)

    const gone = await provision('gone')
    await inDirectory(berth.cwd, 'use', 'gone')
    await remove(gone)
    const { stderr } = await berth.run(['servers', 'get'], { env })
    expect(stderr).toContain(`${gone}, which "berth use" has chosen for ${berth.cwd}, is not there any more.`)
    await inDirectory(berth.cwd, 'use', '--none')
    const last = await provision('last')
    await inDirectory(berth.cwd, 'use', 'last')
    expect(await inDirectory(berth.cwd, 'servers', 'delete', 'last')).toBe(
      `Deleted ${last}. "berth use" had chosen it here, and means none now.\n`,
    )
    expect((await berth.run(['use'], { env })).stderr).toContain('No server is chosen here.')
    writeFileSync(join(home.path, 'berth/use.json'), '[]')
    expect((await berth.run(['servers', 'get'], { env })).stderr).toContain('use.json is damaged')
  })
})

test('projects, tasks and builds are named by less than their ids, or not at all where there is one', async () => {
  const server = await provision('one')
  const project = JSON.parse(await output('projects', 'create', '--name', 'Shop', '--json'))
  const named = [[], ['shop'], ['Shop'], [project.id.slice(0, 12)], [project.id.slice(4, 16)]]
  for (const name of named) expect(await output('projects', 'get', ...name)).toContain(project.id)
  const task = JSON.parse(await output('tasks', 'create', 'complete: fine', '--json')).task_id
  for (const name of [[], [task.slice(0, -3)]]) expect(await output('tasks', 'get', ...name)).toContain(task)
  const build = JSON.parse(await output('builds', 'create', 'a page', '--json')).build_id
  for (const name of [[], [build.slice(0, -3)]])
    expect(await output('builds', 'get', ...name)).toContain(build)
  expect(await failure('tasks', 'get', 'nothing')).toContain('"berth tasks" lists those there are')
  const second = JSON.parse(await output('tasks', 'create', 'complete: fine too', '--json')).task_id
  await output('tasks', 'get', second)
  const several = (await failure('tasks', 'get')).split('\n')
  expect(several[0]).toStartWith('berth: There are 2 tasks. Say which one is meant as TASK.')
  expect(several[1]).toMatch(new RegExp(`^  ${second}  \\w+, complete: fine too, created `))
  await remove(server)
})

/** Returns the shortest beginning of an id that no other id has. */
function uniqueBeginning(id: string, others: readonly string[]): string {
  for (let length = 8; length < id.length; length += 1) {
    if (!others.some((other) => other.startsWith(id.slice(0, length)))) return id.slice(0, length)
  }
  return id
}
