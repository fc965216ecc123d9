import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../support/files.ts'
import { projectPorts } from '../support/ports.ts'
import { processesOf, until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { type Outcome, run, serve, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

/** A project's directory, and what its person's environment has. */
function project(files: Record<string, string>) {
  const folder = temporaryFolder()
  const cwd = join(folder.path, 'project')
  const env = {
    HOME: folder.path,
    XDG_STATE_HOME: join(folder.path, 'state'),
    BERTH_PORT: '0',
    BERTH_PROJECT_PORTS: projectPorts(),
    BERTH_LOG_LEVEL: 'error',
    GREETING: 'moin',
  }
  const put = (path: string, text: string) => writeWhole(join(cwd, path), text)
  for (const [path, text] of Object.entries(files)) put(path, text)
  return {
    cwd,
    env,
    put,
    berth: (...args: string[]): Promise<Outcome> => run(args, { cwd, env }),
    terminal: (...args: string[]) => onTerminal([...berthCommand, ...args], { cwd, env }),
    async [Symbol.asyncDispose]() {
      if (existsSync(join(cwd, '.berth/instance.json'))) await run(['stop'], { cwd, env })
      folder[Symbol.dispose]()
    },
  }
}

const SITE = {
  'berth.yaml': 'projects:\n  site: { directory: site, visibility: public }\n',
  'site/index.html': 'first',
}

const APP = {
  'berth.yaml': `projects:
  app:
    directory: app
    visibility: public
    secrets: { GREETING: { env: GREETING } }
`,
  'app/berth.json': '{"start": "bun server.js"}',
  'app/server.js':
    "console.log('app begins'); Bun.serve({ port: process.env.PORT, fetch: () => { console.log('asked'); return new Response(process.env.GREETING) } })",
  'app/.gitignore': 'private.txt\n',
  'app/private.txt': 'stays here',
}

const urlIn = (output: string): string => /is up: (http:\S+)/.exec(Bun.stripANSI(output))?.[1] ?? ''

test('one command brings an app up from a fresh directory, follows its log, and takes all down on Ctrl-C', async () => {
  await using one = project(APP)
  await using terminal = one.terminal('up')
  await terminal.shows('Following the logs.')
  const url = urlIn(terminal.output())
  expect(await (await fetch(url)).text()).toBe('moin')
  // The health check has asked once before.
  await terminal.shows(/(?:app \|[^\n]*asked[\s\S]*){2}/)
  expect(terminal.output()).toMatch(/app \|.*app begins/)
  const ids = await one.berth('servers', '-q')
  expect(ids.stdout.trim()).toMatch(/^srv_\w+$/)
  expect((await one.berth('files', 'list')).stdout).not.toContain('private.txt')
  terminal.type('\x03')
  expect(await terminal.exited).toBe(0)
  expect(await fetch(url).catch(() => 'gone')).toBe('gone')
  expect(existsSync(join(one.cwd, '.berth/instance.json'))).toBe(false)
})

test('with --watch a change is live without a command', async () => {
  await using one = project(SITE)
  await using terminal = one.terminal('up', '--watch')
  await terminal.shows('Following the logs.')
  const url = urlIn(terminal.output())
  expect(await (await fetch(url)).text()).toBe('first')
  one.put('site/index.html', 'second')
  await terminal.shows(/Live after [\d.]+ m?s/)
  expect(await (await fetch(url)).text()).toBe('second')
  terminal.type('\x03')
  expect(await terminal.exited).toBe(0)
})

test('with --watch a version that fails is not reported live, and push in the directory means the same project', async () => {
  await using one = project(APP)
  await using terminal = one.terminal('up', '--watch')
  await terminal.shows('Following the logs.')
  one.put('app/server.js', 'syntax error here')
  await terminal.shows(
    /It did not come up\.[^\n]*The version before goes on, with its files\. The whole log: berth projects logs app/,
  )
  expect(terminal.output()).not.toContain('Live after')
  one.put('app/server.js', APP['app/server.js'])
  await terminal.shows('Back at the version that runs.')
  one.put('app/server.js', `${APP['app/server.js']}\n// fixed`)
  await terminal.shows(/Live after [\d.]+ m?s/)
  const pushed = await run(['projects', 'push'], { cwd: join(one.cwd, 'app'), env: one.env })
  expect(pushed).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('Nothing has changed') })
  terminal.type('\x03')
  expect(await terminal.exited).toBe(0)
})

test('--detach leaves it running until berth down, which keeps the files, and a second up wakes it with what changed', async () => {
  await using one = project(SITE)
  const first = await one.berth('up', '--detach')
  expect(first).toMatchObject({ exitCode: 0 })
  expect(first.stderr).not.toContain('sk_live_')
  const again = await one.berth('up', '--detach')
  expect(again.stdout).toBe(first.stdout)
  const down = await one.berth('down')
  expect(down.stdout).toBe('site sleeps; its files are kept.\nThe instance is stopped.\n')
  expect((await one.berth('list', '--json')).stdout).not.toContain(one.cwd)
  one.put('site/index.html', 'second')
  const { stdout } = await one.berth('up', '--detach')
  expect(await (await fetch(urlIn(stdout))).text()).toBe('second')
  expect((await one.berth('servers', '-q')).stdout.trim().split('\n')).toHaveLength(1)
  await one.berth('down', '--delete', '--yes')
  const later = await serve([], { cwd: one.cwd, env: { ...one.env } })
  expect((await later.run(['servers', '-q'], { env: one.env })).stdout).toBe('')
  await later[Symbol.asyncDispose]()
})

test('where the usual port is taken, --detach takes a free one and says which, unless the port was chosen', async () => {
  await using one = project(SITE)
  // An address that no other program uses, where the port is sure to be this test's.
  const host = `127.${64 + (process.pid >> 16)}.${(process.pid >> 8) & 255}.${process.pid & 255}`
  using _taken = Bun.listen({ hostname: host, port: 4747, socket: { data() {} } })
  const { BERTH_PORT: _, ...rest } = one.env
  const env = { ...rest, BERTH_HOST: host }
  const portOf = ({ stderr }: Outcome): string | undefined =>
    /runs at http:\/\/127\.[\d.]+:(\d+), until "berth down"\./.exec(stderr)?.[1]
  const up = await run(['up', '--detach'], { cwd: one.cwd, env })
  const port = portOf(up)
  expect(up).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('site is up: http://') })
  expect(Number(port)).toBeGreaterThan(0)
  expect(port).not.toBe('4747')
  const down = async () =>
    expect((await run(['down'], { cwd: one.cwd, env })).stdout).toContain('The instance is stopped.')
  await down()
  // Its addresses stay while the usual port is taken, unless that of its last start is taken too.
  expect(portOf(await run(['up', '--detach'], { cwd: one.cwd, env }))).toBe(port)
  await down()
  {
    using _last = Bun.listen({ hostname: host, port: Number(port), socket: { data() {} } })
    const elsewhere = portOf(await run(['up', '--detach'], { cwd: one.cwd, env }))
    expect([port, '4747', undefined]).not.toContain(elsewhere)
    await down()
  }
  const chosen = await run(['up', '--detach'], { cwd: one.cwd, env: { ...env, BERTH_PORT: '4747' } })
  expect(chosen.exitCode).toBe(1)
  expect(chosen.stderr).toMatch(/Port 4747 .*Choose another with BERTH_PORT or in berth\.config\.json\.\n$/)
})

test('berth down needs no value that the file refers to: neither variables nor files and directories', async () => {
  await using one = project({
    ...APP,
    'berth.yaml': `${APP['berth.yaml']}servers: { box: { files: { note.txt: { from: note.txt } } } }\nkeys: { ci: {} }\n`,
    'note.txt': 'here',
  })
  await using _berth = await serve([], { cwd: one.cwd, env: one.env })
  expect(await one.berth('up', '--detach')).toMatchObject({ exitCode: 0 })
  const { GREETING: _, ...env } = one.env
  rmSync(join(one.cwd, 'note.txt'))
  rmSync(join(one.cwd, 'app'), { recursive: true })
  const down = async (...args: string[]) =>
    (await run(['down', ...args], { cwd: one.cwd, env })).stdout.split('\n').sort()
  expect(await down()).toEqual(['', 'app sleeps; its files are kept.', 'box sleeps; its files are kept.'])
  expect(await down('--delete', '--yes')).toEqual([
    '',
    'The key ci is deleted.',
    'The server app is deleted.',
    'The server box is deleted.',
  ])
})

test('after a kill -9 nothing of it runs, and the next up starts anew with what was there', async () => {
  await using one = project(SITE)
  {
    await using terminal = one.terminal('up')
    await terminal.shows('Following the logs.')
    process.kill(terminal.pid, 'SIGKILL')
    await terminal.exited
  }
  await until(() => processesOf(one.cwd).length === 0, 'no process of it is left')
  expect(await one.berth('down')).toMatchObject({
    exitCode: 0,
    stdout: 'Nothing of the file is up: no berth runs here.\n',
  })
  expect(await one.berth('down', '--delete')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('berth serve --detach'),
  })
  const again = await one.berth('up', '--detach')
  expect(again).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('site is up: http://') })
  expect((await one.berth('servers', '-q')).stdout.trim().split('\n')).toHaveLength(1)
})

test('an instance that runs already is used, and left running', async () => {
  await using one = project({
    ...SITE,
    'berth.yaml': `${SITE['berth.yaml']}servers:\n  box: { files: { note.txt: kept, site: { from: site } } }\nkeys:\n  ci: { servers: [box] }\n`,
  })
  await using berth = await serve([], { cwd: one.cwd, env: one.env })
  const up = await one.berth('up', '--detach')
  expect(up).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('site is up: http://') })
  expect((await one.berth('files', 'read', 'note.txt', '-s', 'box')).stdout).toBe('kept')
  expect((await one.berth('files', 'read', 'site/index.html', '-s', 'box')).stdout).toBe('first')
  const down = await one.berth('down', '--delete')
  expect(down.stdout).toBe(
    'The key ci is deleted.\nThe server box is deleted.\nThe server site is deleted.\n',
  )
  expect((await fetch(`${berth.info.base_url}/_berth/health`)).status).toBe(200)
  expect((await one.berth('down')).stdout).toBe('Nothing of the file is up.\n')
})

test('an app that fails or waits is reported by its name and its exit code, and the others come up', async () => {
  await using one = project({
    ...SITE,
    'berth.yaml': `${SITE['berth.yaml']}  bad: { directory: bad }\n`,
    'bad/berth.json': '{"start": "echo it broke; exit 3"}',
  })
  const failed = await one.berth('up', '--detach')
  expect(failed).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('site is up') })
  expect(failed.stderr).toMatch(/bad {2}\| .*it broke/)
  expect(failed.stderr.match(/The app did not start/g)).toHaveLength(1)
  expect(failed.stderr).toContain('bad  | It did not come up. The whole log: berth projects logs bad\n')
  one.put('bad/berth.json', '{"start": "true", "env": {"TOKEN": {"required": true}}}')
  const waiting = await one.berth('up', '--detach')
  expect(waiting.exitCode).toBe(3)
  expect(waiting.stderr).toContain('TOKEN')
})

test('mistakes name the file, the line and the remedy, and change nothing', async () => {
  await using one = project({ 'berth.yaml': 'projects:\n  site: { directry: site }\n' })
  expect(await one.berth('up')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(
      /^berth: The file \S+berth\.yaml, line 2, column 11: "projects\.site\.directry" is not a known field.* Did you mean directory or app_directory\? Correct it\.\n$/,
    ),
  })
  one.put('berth.yaml', 'projects:\n  site: { secrets: { A: { env: NOT_SET_ANYWHERE } } }\n')
  expect((await one.berth('up')).stderr).toEndWith(
    'the variable NOT_SET_ANYWHERE is not set in the environment of this command: set it, or write its value here. Correct it.\n',
  )
  one.put('berth.yaml', 'projects:\n  site: { directory: nowhere }\n')
  expect((await one.berth('up')).stderr).toMatch(
    /line 2, column 22: "projects\.site\.directory": there is no directory \S+nowhere\. Correct it\./,
  )
  one.put('berth.yaml', 'clock: { freeze: true }\n')
  expect((await one.berth('up')).stderr).toContain('the clock is set at a start alone')
  one.put('site/index.html', 'first')
  one.put('berth.yaml', SITE['berth.yaml'])
  const started = await one.berth('serve', '--fixtures', 'berth.yaml')
  expect(started.stderr).toContain('"berth up" alone sends a directory.')
  expect(existsSync(join(one.cwd, '.berth'))).toBe(false)
  await using none = project({ 'README.md': '' })
  expect((await none.berth('up')).stderr).toContain('There is no berth.yaml in')
})

test('the request refers to no file and no variable of the machine', async () => {
  await using one = project(SITE)
  await using berth = await serve([], { cwd: one.cwd, env: one.env })
  const apply = async (body: unknown) => {
    const response = await fetch(`${berth.info.base_url}/_berth/fixtures`, {
      method: 'POST',
      headers: { authorization: `Bearer ${berth.info.admin_token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return {
      status: response.status,
      body: (await response.json()) as { message?: string; fixtures?: unknown[] },
    }
  }
  const stolen = await apply({ servers: { a: { files: { x: { from: '/etc/hostname' } } } } })
  expect(stolen).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('a request reads no file of this machine') },
  })
  const variable = await apply({ servers: { a: { secrets: { X: { env: 'HOME' } } } } })
  expect(variable).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('HOME is not set') },
  })
  expect((await apply({ clock: { freeze: true } })).status).toBe(400)
  expect((await one.berth('servers', '-q')).stdout).toBe('')
  const made = await apply({ projects: { p: { template: 'static-site' } } })
  expect(made.body.fixtures).toContainEqual(expect.objectContaining({ kind: 'server', name: 'p' }))
  expect(made.body.fixtures).toContainEqual(expect.objectContaining({ kind: 'project', name: 'p' }))
})
