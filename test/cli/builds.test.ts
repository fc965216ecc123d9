import { expect, test } from 'bun:test'
import { until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { run, serve, serveForTests, start, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests()
const server = await berth.server()

const builds = (...args: string[]) => berth.run(['builds', ...args])

const json = (...args: string[]) => berth.json('builds', ...args)

const HOLD = 'run: until [ -e go ]; do sleep 0.05; done'
const letGo = () => berth.run(['files', 'write', server, 'go'])
const holdAgain = () => berth.run(['exec', server, 'rm -f go'])

const idIn = (text: string): string => /bld_\w+/.exec(text)?.[0] ?? ''

test('a build is followed to its end: phases in order and log on stderr, the URL alone on stdout', async () => {
  const { exitCode, stdout, stderr } = await builds(
    'run',
    'A landing page\nwrite: index.html <<< hello',
    '--follow',
  )
  expect(exitCode).toBe(0)
  const url = stdout.trim()
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\n$/)
  expect(await (await fetch(url)).text()).toBe('hello')
  const lines = stderr.split('\n')
  expect(lines[0]).toMatch(new RegExp(`^Building bld_\\w+ on ${server}\\.$`))
  expect(lines.filter((line) => line.startsWith('→'))).toEqual([
    '→ plan 1/6',
    '→ scaffold 2/6',
    '→ implement 3/6',
    '→ install 4/6',
    '→ build 5/6',
    '→ deploy 6/6',
  ])
  expect(lines.indexOf('implement  Changed: index.html.')).toBeGreaterThan(lines.indexOf('→ implement 3/6'))
  const last = lines.findLast((line) => line !== '' && !line.startsWith('✓'))
  expect(last).toBe(`deploy     It answers at ${url}`)
})

test('one that fails exits with 1, says where and why, and prints nothing on stdout', async () => {
  const { exitCode, stdout, stderr } = await builds('run', 'fail: The oven is cold.')
  expect([exitCode, stdout]).toEqual([1, ''])
  expect(stderr).toContain('The oven is cold.')
  expect(stderr).toEndWith(
    `berth: ${idIn(stderr)} ended in the phase implement without a URL; the log above says why. Fix that, and build again: files that are there stay.\n`,
  )
})

test('for programs: the build in one line when it is over, on stderr why it failed, and the same exit codes', async () => {
  const { build } = await json('get', idIn((await builds('run', 'Go on', '--detach')).stdout))
  expect(build.serverId).toBe(server)
  const done = await json('run', 'Go on')
  expect(done).toMatchObject({
    serverId: server,
    goal: 'Go on',
    status: 'completed',
    url: expect.any(String),
  })
  const failed = await builds('run', 'fail: No luck today.', '--json')
  expect(failed.exitCode).toBe(1)
  expect(JSON.parse(failed.stdout)).toMatchObject({ status: 'completed', url: null })
  expect(failed.stderr).toContain('No luck today.')
  const created = await json('run', 'Go on', '--detach')
  expect(created).toMatchObject({ build_id: expect.stringMatching(/^bld_/), status: 'queued' })
})

test('Ctrl-C leaves it going and says how to look at it again; logs -f follows it to its end', async () => {
  await holdAgain()
  const child = start(['builds', 'run', `Go on\n${HOLD}\nrun: echo over now`], { cwd: berth.cwd })
  let stderr = ''
  const all = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) stderr += chunk
  })()
  await until(() => stderr.includes('→ implement'), 'the agent began', 30_000)
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await all
  const id = idIn(stderr)
  expect(stderr).toEndWith(`\nberth: ${id} goes on. Look at it with: berth builds logs ${id} -f\n`)
  expect((await builds('list')).stdout).toMatch(new RegExp(`^${id}  running, implement +Go on…`, 'm'))
  const following = start(['builds', 'logs', id, '-f'], { cwd: berth.cwd })
  await letGo()
  const shown = await following.stdout.text()
  expect(await following.exited).toBe(0)
  expect(shown).toContain('implement  over now\n')
  expect(shown).toMatch(/deploy {5}It answers at http:\S+\n$/)
})

test('list and get say what became of each, newest first; logs prints the end', async () => {
  const { stdout } = await builds(
    'run',
    'A landing page: ✂ with a goal that is much longer than a table is wide',
    '-d',
  )
  const id = idIn(stdout)
  expect(stdout).toBe(`Building ${id} on ${server}.\nLook at it with: berth builds logs ${id} -f\n`)
  await until(async () => (await json('get', id)).build.status === 'completed', 'the build is over', 30_000)
  const failed = idIn((await builds('run', 'fail: x')).stderr)
  const lines = (await builds()).stdout.split('\n')
  expect(lines[0]).toMatch(/^ID +STATUS +GOAL +SERVER +URL$/)
  expect(lines[1]).toMatch(new RegExp(`^${failed}  failed in implement +fail: x `))
  expect(lines[2]).toMatch(
    new RegExp(
      `^${id}  completed, nothing implemented  A landing page: ✂ with a goal that is much longe…  ${server}  http:`,
    ),
  )
  const shown = (await builds('get', id, '--server', server)).stdout
  expect(shown).toMatch(/^Status {5}completed, nothing implemented$/m)
  expect(shown).toMatch(/^Steps {6}plan done, scaffold done, implement skipped, .*, deploy done$/m)
  expect((await builds('logs', failed, '--tail', '1')).stdout).toBe(
    'berth      The build failed in the phase implement: x\n',
  )
  const { logs } = JSON.parse((await builds('logs', failed, '--json')).stdout)
  expect(logs.at(-1)).toMatchObject({ source: 'berth', text: 'The build failed in the phase implement: x' })
})

test('a goal comes from standard input, too; an empty one is wrong usage', async () => {
  const goal = new TextEncoder().encode('fail: from a pipe\n')
  const piped = await berth.run(['builds', 'run', '-'], { stdin: goal })
  expect(piped.stderr).toContain('The build failed in the phase implement: from a pipe')
  for (const outcome of [
    await builds('run', '  '),
    await berth.run(['builds', 'run', '-'], { stdin: new Uint8Array() }),
  ]) {
    expect([outcome.exitCode, outcome.stderr]).toEqual([
      2,
      'berth: The goal is empty. Say what is to be built.\n',
    ])
  }
  expect((await builds('run')).exitCode).toBe(2)
  expect((await builds('run', 'x', '-f', '-d')).exitCode).toBe(2)
})

test('a build that is not there, and a server that is not there, are named', async () => {
  const absent = await builds('get', 'bld_x')
  expect([absent.exitCode, absent.stderr]).toEqual([
    1,
    'berth: No build has the id "bld_x". "berth builds" lists those there are.\n',
  ])
  expect((await builds('run', 'x', '--server', 'srv_x')).stderr).toMatch(/^berth: .*srv_x.* \(not_found\)\n$/)
})

test('without a server it says how to make one, with several which one is meant', async () => {
  using folder = temporaryFolder()
  await using empty = await serve([], { cwd: folder.path })
  const outcome = await empty.run(['builds', 'run', 'A landing page'])
  expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
  expect(outcome.stderr).toBe('berth: There is no server yet. Provision one with "berth servers create".\n')
  expect((await empty.run(['builds'])).stdout).toStartWith('No builds yet.')
  const [one, two] = [await empty.server(), await empty.server()]
  expect((await empty.run(['builds', 'run', 'x'])).stderr).toContain(
    'Say which one is meant with --server SERVER',
  )
  await empty.run(['builds', 'run', 'fail: a', '--server', one])
  await empty.run(['builds', 'run', 'fail: b', '--server', two])
  const goals = (await empty.run(['builds', '--json'])).stdout
  expect(JSON.parse(goals).builds.map(({ goal }: { goal: string }) => goal)).toEqual(['fail: b', 'fail: a'])
  const own = (await empty.run(['builds', 'list', '--server', one, '--json'])).stdout
  expect(JSON.parse(own).builds.map(({ goal }: { goal: string }) => goal)).toEqual(['fail: a'])
})

test('on a terminal phases stand out, and nothing that is printed moves the cursor', async () => {
  await using typed = onTerminal([...berthCommand, 'builds', 'run', "Go on\nrun: printf 'a\\033[2Jb\\n'"], {
    cwd: berth.cwd,
  })
  expect(await typed.exited).toBe(0)
  expect(typed.output()).toContain('\u001b[1m→ implement\u001b[0m 3/6')
  expect(typed.output()).toMatch(/implement\S* {2}ab\r\n/)
  expect(typed.output()).not.toContain('\u001b[2J')
})

test('commands, options, servers and ids of builds are offered at the TAB key', async () => {
  const offered = async (...words: string[]): Promise<string[]> => {
    const { stdout } = await run(['__complete', 'fish', '--', ...words], { cwd: berth.cwd })
    const [, ...lines] = stdout.trimEnd().split('\n')
    return lines
  }
  const first = (await json('list')).builds[0]
  expect((await offered('builds', '')).map((line) => line.split('\t')[0])).toEqual([
    'run',
    'create',
    'list',
    'get',
    'logs',
  ])
  expect(await offered('builds', 'get', first.id)).toEqual([
    `${first.id}\tcompleted, ${first.goal.replaceAll('\n', ' ')}`,
  ])
  expect((await offered('builds', 'logs', 'bld_')).length).toBeGreaterThan(5)
  expect((await offered('builds', 'run', 'x', '--server', 'srv_')).length).toBe(1)
  expect((await offered('builds', 'run', '--de')).map((line) => line.split('\t')[0])).toEqual(['--detach'])
})

test('a build or a task is found by one request, however many servers there are', async () => {
  await Promise.all([berth.server(), berth.server()])
  const ours = async (): Promise<string[]> => {
    const response = await fetch(`${berth.info.base_url}/_berth/requests`, {
      headers: { authorization: `Bearer ${berth.info.admin_token}` },
    })
    const { requests } = (await response.json()) as { requests: { operation: string | null; seq: number }[] }
    return requests.map(({ operation }) => operation ?? '')
  }
  const before = (await ours()).length
  await json('list')
  await berth.run(['tasks', 'list'])
  expect((await ours()).slice(0, -before || undefined).sort()).toEqual(['builds.listAll', 'tasks.listAll'])
})
