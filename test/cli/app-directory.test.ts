import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeWhole } from '../support/files.ts'
import { call } from '../support/serve.ts'
import { type Served, serve, start, temporaryFolder } from './command.ts'

let folder: string
let berth: Served
let server: string
let root: string
beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-monorepo-')))
  berth = await serve(['--source-folders', folder])
  server = (await berth.json('servers', 'create', '--tier', 'large')).id
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const put = (path: string, text: string) => writeWhole(join(root, path), text)
const run = (...args: string[]) => berth.run(args)
const bodyOf = async (url: string) => (await fetch(url)).text()

/** Makes a repository of two apps, and a link to one of them. */
beforeEach(() => {
  root = mkdtempSync(join(folder, 'repository-'))
  put('README', 'none of them')
  put('web/index.html', 'the page')
  put('api/berth.json', '{"start": "bun server.ts"}')
  put('api/server.ts', 'Bun.serve({ port: process.env.PORT, fetch: () => new Response(process.cwd()) })')
  symlinkSync('web', join(root, 'site'))
})

const project = (id: string) => berth.json('projects', 'get', id)

/** Creates a project of the repository. */
async function made(directory: string): Promise<{ id: string; slug: string; url: string }> {
  const { exitCode, stdout, stderr } = await run(
    ...['projects', 'create', root, '--directory', directory],
    ...['--server', server, '--public', '--json'],
  )
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  return JSON.parse(stdout)
}

test('the app of a directory runs there, and the whole code is kept', async () => {
  const api = await made('./api/')
  expect(api).toMatchObject({ directory: 'api', app: { directory: 'api', start: 'bun server.ts' } })
  expect(await bodyOf(api.url)).toBe(`/workspace/projects/${api.slug}/api`)
  expect((await run('exec', server, `cat projects/${api.slug}/README`)).stdout).toBe('none of them')
  // A link in the code may lead to it.
  const site = await made('site')
  expect(site).toMatchObject({ directory: 'site', app: { directory: 'web', serves: 'web' } })
  expect(await bodyOf(site.url)).toBe('the page')
  for (const { id } of [api, site]) await run('projects', 'delete', id, '--yes')
}, 60_000)

test('a repository and a template have one too', async () => {
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '-qm', 'a'],
  ])
    expect(Bun.spawnSync(['git', ...args], { cwd: root }).exitCode).toBe(0)
  const words = ['projects', 'create', '--server', server, '--public']
  const cloned = await berth.json(...words, '--git', root, '--directory', 'web')
  expect(cloned).toMatchObject({ directory: 'web', init_phase: 'ready', app: { directory: 'web' } })
  expect(await bodyOf(cloned.url)).toBe('the page')
  await run('projects', 'delete', cloned.id, '--yes')
  const body = { source: { type: 'template', template: 'static-site', directory: 'nowhere' } }
  const made = await call(berth.info, 'POST', `/servers/${server}/projects`, body)
  expect(made).toMatchObject({ status: 201, body: { directory: 'nowhere' } })
  await run('projects', 'delete', made.body.id, '--yes')
}, 60_000)

test('a push keeps it or names another; one that fails leaves all as it was', async () => {
  const { id, url } = await made('web')
  put('web/index.html', 'the second page')
  expect((await run('projects', 'push', root, '--project', id)).exitCode).toBe(0)
  expect([await bodyOf(url), (await project(id)).directory]).toEqual(['the second page', 'web'])
  expect((await run('projects', 'push', root, '--project', id, '--directory', 'api')).exitCode).toBe(0)
  expect(await bodyOf(url)).toEndWith('/api')
  for (const act of ['restart', 'init']) expect((await run('projects', act, id)).exitCode).toBe(0)
  expect(await project(id)).toMatchObject({ directory: 'api', app: { directory: 'api' } })
  put('broken/berth.json', '{"start": "exit 3"}')
  expect((await run('projects', 'push', root, '--project', id, '--directory', 'broken')).exitCode).toBe(1)
  expect(await project(id)).toMatchObject({ directory: 'api', runtime_status: 'running' })
  expect(await bodyOf(url)).toEndWith('/api')
  put('berth.json', '{"static": {"folder": "web"}}')
  expect((await run('projects', 'push', root, '--project', id, '--directory', '.')).exitCode).toBe(0)
  expect([await bodyOf(url), (await project(id)).directory]).toEqual(['the second page', null])
  await run('projects', 'delete', id, '--yes')
}, 90_000)

test('it is kept over a crash of berth', async () => {
  using own = temporaryFolder()
  const first = await serve([], { cwd: own.path })
  const id = (await first.json('servers', 'create')).id
  const created = await first.run([
    'projects',
    'create',
    root,
    '--directory',
    'web',
    '--server',
    id,
    '--json',
  ])
  expect(JSON.parse(created.stdout)).toMatchObject({ directory: 'web', init_phase: 'ready' })
  first.child.kill('SIGKILL')
  await first.child.exited
  await using second = await serve([], { cwd: own.path })
  const { projects } = await second.json('projects')
  expect(projects).toMatchObject([{ directory: 'web', app: { directory: 'web' } }])
  expect((await second.run(['projects', 'init', projects[0].id])).exitCode).toBe(0)
}, 60_000)

test.each([
  ['/etc', 'expected a directory relative to the code'],
  ['../web', 'expected a directory relative to the code'],
  ['web/../../x', 'expected a directory relative to the code'],
  ['we\nb', 'expected a directory relative to the code'],
  ['nowhere', 'It has no directory "nowhere". At its top it has api, web.'],
  ['README', 'It has no directory "README"'],
])('a project is not made in the directory %j', async (directory, reason) => {
  const before = (await berth.json('projects')).projects.length
  const { exitCode, stderr } = await run(
    ...['projects', 'create', root, '--server', server, '--directory', directory],
  )
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining(reason) })
  expect((await berth.json('projects')).projects.length).toBe(before)
})

test('a push that lacks the directory of the app changes nothing', async () => {
  const { id, url } = await made('web')
  rmSync(join(root, 'web'), { recursive: true })
  rmSync(join(root, 'site'))
  const { exitCode, stderr } = await run('projects', 'push', root, '--project', id)
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.stringContaining('There is no directory "web" in the code.'),
  })
  expect(await bodyOf(url)).toBe('the page')
  await run('projects', 'delete', id, '--yes')
}, 60_000)

test('a deployment publishes the app of a directory, and refuses one that is not there or leads out', async () => {
  const deployed = await berth.run(['deploy', root, '--directory', 'api', '--server', server, '--json'])
  const { url, app } = JSON.parse(deployed.stdout)
  expect(app).toMatchObject({ directory: 'api', start: 'bun server.ts' })
  expect(await bodyOf(url)).toBe('/workspace/api')
  const at = (body: unknown) => call(berth.info, 'POST', `/servers/${server}/deployments`, body)
  expect(await at({ directory: 'site' })).toMatchObject({ status: 201, body: { app: { serves: 'web' } } })
  expect(await bodyOf(url)).toBe('the page')
  await run('exec', server, 'ln -s /etc out; ln -s .. up; mkdir plain; echo text > plain/a.txt')
  for (const directory of ['out', 'up', 'nowhere', '../x', '/workspace', 'projects', '']) {
    const { status, body } = await at({ directory })
    expect({ directory, status, error: body.error }).toEqual({ directory, status: 400, error: 'bad_request' })
  }
  // Without an app its files are listed, and no others.
  expect(await at({ directory: 'plain' })).toMatchObject({ status: 201, body: { app: { serves: 'plain' } } })
  expect(await bodyOf(`${url}a.txt`)).toBe('text\n')
  expect((await fetch(`${url}README`)).status).toBe(404)
}, 60_000)

test('app_directory of berth.yaml names it, and another one moves the app', async () => {
  const yaml = (directory: string) =>
    put(
      'berth.yaml',
      `projects:\n  mono: { directory: ., app_directory: ${directory}, visibility: public }\n`,
    )
  const env = {
    BERTH_BASE_URL: berth.info.base_url,
    BERTH_ADMIN_TOKEN: berth.info.admin_token,
    BERTH_API_KEY: berth.info.api_key,
  }
  const up = async (): Promise<unknown> => {
    const child = start(['up', '--detach'], { cwd: root, env })
    const stderr = await child.stderr.text()
    expect({ code: await child.exited, stderr }).toMatchObject({ code: 0 })
    const { projects } = await berth.json('projects')
    const { url, directory } = projects.find(({ name }: { name: string }) => name === 'mono')
    return [directory, await bodyOf(url)]
  }
  yaml('web')
  expect(await up()).toEqual(['web', 'the page'])
  yaml('api')
  expect(await up()).toEqual(['api', expect.stringMatching(/\/api$/)])
}, 90_000)
