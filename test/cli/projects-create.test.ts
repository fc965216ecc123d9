import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { bareEnvironment, type Served, serve, start, temporaryFolder } from './command.ts'
import { projectCommands, told } from './project-commands.ts'

let sources: ReturnType<typeof temporaryFolder>
let berth: Served
let server: string
beforeAll(async () => {
  sources = temporaryFolder()
  berth = await serve(['--plan', '{"projects":{"small":100}}', '--source-folders', sources.path])
  server = await berth.server()
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  sources[Symbol.dispose]()
})

const { projects, json, write } = projectCommands(() => berth)

/** An app that answers with a variable. */
const APP = `console.log('app says hello'); console.error('app says \\x1b[31mred\\x1b[0m')
Bun.serve({ port: process.env.PORT, hostname: process.env.HOST,
  fetch: (request) => new Response(String(process.env[new URL(request.url).pathname.slice(1)])) })`

test('from a folder: packed, brought up before the eyes, and its URL answers', async () => {
  write('my shop', {
    'index.ts': APP,
    'berth.json': '{"install":"echo installing things"}',
    '.env': 'FROM_FILE=file\nBOTH=file',
    '.git/x': '',
  })
  const outcome = await projects(
    'create',
    'my shop',
    '--public',
    '--env',
    'BOTH=flag',
    '--env-file',
    'my shop/.env',
  )
  expect(outcome.exitCode).toBe(0)
  const { id, url } = told(outcome)
  const { port } = new URL(berth.info.base_url)
  expect(outcome.stdout).toBe(
    `Created ${id} (my shop, slug my-shop) on ${server}.\nmy-shop is ready at ${url} and http://my-shop.localhost:${port}/\n`,
  )
  const lines = outcome.stderr.split('\n')
  expect(lines[0]).toMatch(/^Packed my shop: 2 files, \d+ bytes; \d+ bytes to send\.$/)
  expect(lines[1]).toMatch(/^Left out: \.git\/; \.env \(may hold secrets; .*\)\.$/)
  // What the app itself says may come a little after its answer; what came before it has been shown.
  expect(lines).toContain('install  installing things')
  expect(lines).toContain('→ ready')
  const value = async (name: string) => (await fetch(url + name)).text()
  expect([await value('FROM_FILE'), await value('BOTH')]).toEqual(['file', 'flag'])
  expect((await berth.run(['exec', server, 'ls -A projects/my-shop'])).stdout).not.toContain('.env')
})

test('each phase is above its own lines, however quick it is', async () => {
  write('phases', {
    'index.ts': APP,
    'berth.json': '{"install":"echo installing","build":"echo building","start":"bun index.ts"}',
  })
  const { stderr } = await projects('create', 'phases')
  const lines = stderr.split('\n').filter((line) => /^→|ing$/.test(line))
  expect(lines).toEqual([
    ...['→ install', 'berth    Runs: echo installing', 'install  installing'],
    ...['→ build', 'berth    Runs: echo building', 'build    building'],
    ...['→ start', '→ healthcheck', '→ ready'],
  ])
})

test('an app that never stops talking is followed no longer than until it is ready', async () => {
  write('chatty', { 'index.ts': `setInterval(() => console.log('still here'), 20)\n${APP}` })
  expect((await projects('create', 'chatty')).exitCode).toBe(0)
})

test('private by default: it says how to get a URL', async () => {
  write('shy', { 'index.html': 'x' })
  const outcome = await projects('create', '--from', 'shy', '--name', 'quiet')
  const { id } = told(outcome)
  expect(outcome.stdout).toEndWith(
    `quiet is ready, and private. Give it a URL with: berth projects update ${id} --public\n`,
  )
})

test('a worker is ready without a URL, and its lines have its name', async () => {
  write('bot', { 'main.ts': "console.log('at work'); setInterval(() => {}, 1000)" })
  const { exitCode, stdout, stderr } = await projects('create', 'bot', '--worker', '--public')
  expect(exitCode).toBe(0)
  expect(stdout).toEndWith('bot is ready: a worker, which has no URL.\n')
  expect(stderr).toContain('worker   at work\n')
  expect((await projects('get', 'bot')).stdout).toContain('Worker       worker, running: bun main.ts\n')
  expect((await projects('open', 'bot')).stderr).toContain('bot is a worker: it has no URL.')
})

test('from a template, ephemeral, for programs: one line of JSON when it is ready', async () => {
  const project = await json('create', '--template', 'static-site', '--ephemeral', '--description', 'd')
  expect(project).toMatchObject({
    template: 'static-site',
    lifecycle: 'ephemeral',
    description: 'd',
    init_phase: 'ready',
    runtime_status: 'running',
    server_id: server,
  })
})

test('from a git repository, named after it, at a ref', async () => {
  const repository = join(sources.path, 'pages.git')
  const git = (...args: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(
      ['git', '-c', 'user.name=x', '-c', 'user.email=x@example.com', '-C', repository, ...args],
      { env: bareEnvironment() },
    )
    if (exitCode !== 0) throw new Error(stderr.toString())
  }
  mkdirSync(repository)
  git('init', '-q', '-b', 'main')
  writeFileSync(join(repository, 'index.html'), 'first')
  git('add', '.')
  git('commit', '-qm', 'first')
  git('tag', 'v1')
  writeFileSync(join(repository, 'index.html'), 'second')
  git('commit', '-qam', 'second')
  const outcome = await projects('create', '--git', repository, '--ref', 'v1', '--public')
  expect(outcome.stdout).toContain('(pages, slug pages)')
  expect(await (await fetch(told(outcome).url)).text()).toBe('first')
})

test('from an archive file, named after it', async () => {
  write('packed', { 'index.html': 'from an archive' })
  Bun.spawnSync(['tar', '-czf', 'site.tar.gz', '-C', 'packed', '.'], { cwd: berth.cwd })
  const outcome = await projects('create', '--archive', 'site.tar.gz', '--public')
  expect(outcome.stdout).toContain('(site, slug site)')
  expect(await (await fetch(told(outcome).url)).text()).toBe('from an archive')
})

test('the URL of an archive is handed to berth', async () => {
  const { exitCode, stderr } = await projects('create', '--archive', 'http://127.0.0.1:1/x.zip')
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^berth: .*https.* \(bad_request\)\n$/)
})

test('without a source it is blank, and the next step is printed', async () => {
  const outcome = await projects('create', '--name', 'nothing yet')
  const { id } = told(outcome)
  expect(outcome.stdout).toEndWith(
    `It is blank. Put code into projects/nothing-yet on the server, then run: berth projects init ${id}\n`,
  )
  const init = await projects('init', id)
  expect(init.exitCode).toBe(1)
  expect(init.stderr).toMatch(/^berth: .*no code.* \(bad_request\)\n$/)
})

test('one that fails exits with 1, shows the log and the remedy; once fixed, init brings it up', async () => {
  write('broken', { 'index.ts': 'console.error("no luck today"); process.exit(3)' })
  const outcome = await projects('create', 'broken', '--public')
  expect(outcome.exitCode).toBe(1)
  const { id } = told(outcome)
  expect(outcome.stderr).toMatch(/^app {6}no luck today$/m)
  expect(outcome.stderr).toEndWith(
    `berth: broken could not be brought up; the log above says why. Fix it, then run: berth projects push broken\nThe whole log: berth projects logs broken\n`,
  )
  const again = await projects('init', id, '--json')
  expect(again.exitCode).toBe(1)
  expect(JSON.parse(again.stdout)).toMatchObject({ id, init_phase: 'failed' })
  expect(again.stderr).toContain('no luck today')
  expect(again.stderr).toContain(
    `berth: broken could not be brought up; the log above says why. Fix it, then run: berth projects init ${id}\n`,
  )
  await berth.run(['files', 'write', server, 'projects/broken/index.ts'], {
    stdin: new TextEncoder().encode(APP),
  })
  const mended = await projects('init', id)
  expect(mended.exitCode).toBe(0)
  expect(mended.stdout).toMatch(/^broken is ready at http:\S+ and http:\S+\n$/)
  expect(mended.stderr).not.toContain('no luck today')
})

test('one that waits for variables exits with 3 and says what to type; that goes on', async () => {
  write('asking', {
    'index.ts': APP,
    '.env.example': '# From the page of your account\nAPI_TOKEN=\nMODE=test\nOF_THE_SERVER=\nPORT=\n',
    'berth.json': '{"env":{"FROM_MANIFEST":{"required":true},"GIVEN":{"required":true}}}',
  })
  await berth.run(['secrets', 'set', 'OF_THE_SERVER=1', '--server', server])
  const outcome = await projects('create', 'asking', '--public', '--env', 'GIVEN=1')
  expect(outcome.exitCode).toBe(3)
  const { id } = told(outcome)
  const said = `asking waits for the variables that its code asks for: API_TOKEN, FROM_MANIFEST.
  API_TOKEN: From the page of your account
  Set them:           berth secrets set API_TOKEN FROM_MANIFEST --project ${id}
  Go on without them: berth projects init ${id} --proceed
`
  expect(outcome.stderr).toEndWith(said)
  expect((await projects('get', id)).stdout).toEndWith(`\n\n${said}`)
  expect(await projects('init', id, '--json')).toMatchObject({ exitCode: 3, stderr: said })
  expect((await berth.run(['secrets', 'list', '--project', id])).stdout).toBe(`GIVEN

Its code also asks for
  API_TOKEN (missing): From the page of your account
  FROM_MANIFEST (missing)
  MODE (default test)
`)
  await berth.run(['secrets', 'set', 'FROM_MANIFEST=', '--project', id])
  expect((await projects('get', id)).stdout).toContain('asks for: API_TOKEN.\n')
  await berth.run(['secrets', 'set', 'API_TOKEN=given', '--project', id])
  await until(async () => (await json('get', id)).init_phase === 'ready', 'the bring-up went on', 30_000)
  const { url } = await json('get', id)
  expect(await (await fetch(`${url}API_TOKEN`)).text()).toBe('given')
})

test('--proceed goes on without the variables', async () => {
  write('asking', { 'index.ts': APP, '.env.example': 'API_TOKEN=\n' })
  const { exitCode, stdout } = await projects('create', 'asking', '--detach')
  expect(exitCode).toBe(0)
  const id = /^Created (prj_\w+) /.exec(stdout)?.[1] ?? ''
  expect(stdout).toEndWith(`Its bring-up goes on. Look at it with: berth projects logs ${id} -f\n`)
  await until(async () => (await json('get', id)).init_phase === 'awaiting_secrets', 'it waits', 30_000)
  expect(await json('init', id, '--proceed')).toMatchObject({ id, init_phase: 'ready' })
})

test('Ctrl-C leaves the bring-up going and says how to look at it again', async () => {
  write('slow', {
    'index.html': 'x',
    'berth.json': JSON.stringify({
      install: 'echo begun; until [ -e go ]; do sleep 0.05; done; echo over',
    }),
  })
  const child = start(['projects', 'create', 'slow', '--name', 'slow'], { cwd: berth.cwd })
  let stderr = ''
  const all = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) stderr += chunk
  })()
  await until(() => stderr.includes('install  begun'), 'the installation began', 30_000)
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await all
  const { id } = await json('get', 'slow')
  expect(stderr).toEndWith(
    `berth: the bring-up of slow goes on. Look at it with: berth projects logs ${id} -f\n`,
  )
  const following = start(['projects', 'init', id, '--json'], { cwd: berth.cwd })
  await berth.run(['files', 'write', server, 'projects/slow/go'])
  expect(await following.exited).toBe(0)
  expect((await projects('logs', id)).stdout).toContain('install  over\n')
})

test('a folder that is too large for a request comes in parts, with the first variables', async () => {
  const content = new Uint8Array(34 * 1024 * 1024)
  for (let at = 0; at < content.length; at += 65_536)
    crypto.getRandomValues(content.subarray(at, at + 65_536))
  write('heavy', { 'index.ts': APP })
  writeFileSync(join(berth.cwd, 'heavy/large.bin'), content)
  const outcome = await projects('create', 'heavy', '--public', '--env', 'GIVEN=yes')
  expect(outcome).toMatchObject({ exitCode: 0 })
  expect(outcome.stderr).toMatch(/^Sending heavy: 2 files, 35\.7 MB, in 4 parts\.\n/)
  const { id, url, addresses } = told(outcome)
  expect(outcome.stdout).toEndWith(`heavy is ready at ${addresses}\n`)
  expect(await (await fetch(`${url}GIVEN`)).text()).toBe('yes')
  const { stdout } = await berth.run(['exec', server, 'sha256sum < projects/heavy/large.bin'])
  expect(stdout).toStartWith(new Bun.CryptoHasher('sha256').update(content).digest('hex'))
  // It is remembered as one that was pushed.
  expect(await projects('push', 'heavy')).toMatchObject({
    stdout: `Nothing has changed: heavy at ${addresses}\n`,
  })
  await projects('delete', id, '--yes')
})

test('a link that leads out and a folder that is not there are refused, and nothing is made', async () => {
  const before = (await json('list')).projects.length
  const absent = await projects('create', 'absent')
  expect(absent).toMatchObject({ exitCode: 1, stdout: '' })
  expect(absent.stderr).toMatch(/^berth: There is no directory .*absent\.\n$/)
  write('empty', { '.env': 'A=1' })
  expect((await projects('create', 'empty')).stderr).toStartWith(
    'berth: empty has no file to send. Left out: .env',
  )
  expect((await projects('create', '--archive', 'absent.zip')).stderr).toStartWith(
    'berth: There is no file absent.zip.',
  )
  expect((await json('list')).projects.length).toBe(before)
})
