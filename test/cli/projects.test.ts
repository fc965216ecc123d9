import { describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { run, serve, serveForTests, start, temporaryFolder } from './command.ts'
import { projectCommands, told } from './project-commands.ts'

const berth = await serveForTests(['--plan', '{"projects":{"small":100}}'])
await berth.server()

const { projects, json, write } = projectCommands(() => berth)
const blank = async (name: string) => (await json('create', '--name', name)).id as string

describe('one project', () => {
  test('is shown, changed and deleted by id, slug or name', async () => {
    const id = await blank('Häfen & more')
    expect(await json('get', 'hafen-more')).toMatchObject({ id, name: 'Häfen & more', visibility: 'private' })
    const changed = await json(
      'update',
      'Häfen & more',
      '--name',
      'Ports',
      '--description',
      '',
      '--public',
      '--ephemeral',
    )
    expect(changed).toMatchObject({
      id,
      name: 'Ports',
      slug: 'hafen-more',
      visibility: 'public',
      lifecycle: 'ephemeral',
    })
    const shown = (await projects('get', 'Ports')).stdout
    expect(shown).toContain('Slug         hafen-more\n')
    expect(shown).toContain(`URL          ${changed.url}\n`)
    expect(await json('update', id, '--private', '--persistent')).toMatchObject({
      visibility: 'private',
      lifecycle: 'persistent',
      url: null,
    })
    expect((await projects('rm', 'Ports')).stdout).toBe(`Deleted ${id}.\n`)
    const gone = await projects('get', id)
    expect(gone).toMatchObject({ exitCode: 1, stdout: '' })
    expect(gone.stderr).toMatch(/^berth: .+ \(not_found\)\n$/)
  })

  test('is not guessed where a name may mean several', async () => {
    const ids = [await blank('twin'), await blank('twin')]
    const renamed = [await blank('first'), await blank('second')]
    for (const id of renamed) await projects('update', id, '--name', 'both')
    const { exitCode, stderr } = await projects('delete', 'both')
    expect(exitCode).toBe(1)
    for (const said of [...renamed, 'second', 'Name the project by its id or slug.'])
      expect(stderr).toContain(said)
    // A slug is unique, so it wins over the names of others.
    expect(await json('get', 'twin')).toMatchObject({ id: ids[0] })
    expect(await json('get', 'twin-2')).toMatchObject({ id: ids[1] })
    expect((await projects('get', 'no such')).stderr).toStartWith('berth: No project has "no such"')
  })

  test('is cleaned up only where it is ephemeral', async () => {
    const id = await blank('to clean')
    expect((await projects('cleanup', id)).stderr).toMatch(/^berth: .*persistent.*\(bad_request\)\n$/)
    await projects('update', id, '--ephemeral')
    expect((await projects('cleanup', id)).stdout).toBe(`Cleaned up ${id}.\n`)
  })
})

test('projects are listed for people, plain "berth projects" included, also those of one server', async () => {
  const other = await berth.server()
  const created = JSON.parse(
    (await projects('create', '--server', other, '--name', 'alone', '--json')).stdout,
  )
  const { stdout } = await projects('--server', other)
  const [heading, line, end] = stdout.split('\n')
  expect(heading).toMatch(/^ID +SLUG +NAME +STATUS +VISIBILITY +LIFECYCLE +SERVER +URL$/)
  expect(line).toMatch(new RegExp(`^${created.id} +alone +alone +unbuilt +private +persistent +${other}$`))
  expect(end).toBe('')
  expect((await projects()).stdout).toContain(created.id)
  await projects('delete', created.id)
  expect((await projects('list', '--server', other)).stdout).toBe(
    'No projects yet. Make one with "berth projects create".\n',
  )
  const several = await projects('create')
  expect(several.exitCode).toBe(1)
  expect(several.stderr).toContain('There are 2 servers')
  await berth.run(['servers', 'delete', other])
})

test('without a server it says how to get one', async () => {
  await using other = await serve()
  expect(await run(['projects', 'create', '--template', 'static-site'], { cwd: other.cwd })).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: 'berth: There is no server yet. Provision one with "berth servers create".\n',
  })
})

test('logs prints the end of the log and follows what comes, for people and for programs', async () => {
  write('talking', {
    'index.ts': `console.log('up'); Bun.serve({ port: process.env.PORT, hostname: process.env.HOST,
      fetch: (request) => { console.log('asked for ' + new URL(request.url).pathname); return new Response() } })`,
  })
  const { id, url } = told(await projects('create', 'talking', '--public'))
  await fetch(`${url}first`)
  await until(
    async () => (await projects('logs', id)).stdout.includes('app      asked for /first\n'),
    'it is logged',
  )
  const { logs } = await json('logs', id, '--tail', '1')
  expect(logs).toMatchObject([{ source: 'app', stream: 'stdout', text: 'asked for /first' }])
  const child = start(['projects', 'logs', 'talking', '-f', '--tail', '0', '--json'], { cwd: berth.cwd })
  let stdout = ''
  const all = (async () => {
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) stdout += chunk
  })()
  await until(
    async () => {
      await fetch(`${url}second`)
      return stdout.includes('\n')
    },
    'what comes is followed',
    20_000,
  )
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await all
  for (const line of stdout.trimEnd().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ source: 'app', text: 'asked for /second' })
})

describe('open', () => {
  /** A machine with a screen, and a browser that writes down what it is to show. */
  function screen() {
    const folder = temporaryFolder()
    const program = join(folder.path, 'xdg-open')
    writeFileSync(program, `#!/bin/sh\nprintf %s "$*" > "${folder.path}/shown"\n`)
    chmodSync(program, 0o755)
    const env = { DISPLAY: ':99', PATH: `${folder.path}:${process.env.PATH}` }
    return { ...folder, env, shown: () => readFileSync(join(folder.path, 'shown'), 'utf8') }
  }

  test.skipIf(process.platform !== 'linux')(
    'shows the URL in the browser, or prints it where there is none',
    async () => {
      using machine = screen()
      const { id, url } = await json('create', '--template', 'static-site', '--name', 'to open', '--public')
      const opened = await berth.run(['projects', 'open', 'to-open'], { env: machine.env })
      expect(opened).toMatchObject({ exitCode: 0, stdout: `Opened ${url}\n`, stderr: '' })
      expect(machine.shown()).toBe(url)
      expect((await projects('open', id)).stdout).toBe(`${url}\n`)
    },
  )

  test('refuses a private project and says the remedy', async () => {
    const id = await blank('not to open')
    const { exitCode, stdout, stderr } = await projects('open', id)
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toBe(
      `berth: not-to-open is private: no URL leads to it. Give it one with: berth projects update ${id} --public\n`,
    )
  })
})

test.each([
  [['create', '.', '--template', 'x'], 'Say where the code comes from once'],
  [['create', '--git', 'x', '--archive', 'y'], 'Say where the code comes from once'],
  [['create', '.', '--from', '.'], 'Name the directory once'],
  [['create', '--ref', 'v1'], '--ref names a branch'],
  [['create', '--public', '--private'], 'cannot be used with'],
  [['create', '--env', 'very-secret'], '--env: number 1 is not NAME=VALUE'],
  [['update', 'x'], 'Say what to change'],
  [['update', 'x', '--ephemeral', '--persistent'], 'cannot be used with'],
  [['logs', 'x', '--tail', 'many'], 'Expected a whole number of lines'],
  [['get', 'a', 'b'], 'too many arguments'],
])('wrong usage: projects %p', async (args, said) => {
  const { exitCode, stdout, stderr } = await projects(...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(said)
  expect(stderr).not.toContain('very-secret')
})
