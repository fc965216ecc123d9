import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { writeWhole } from '../support/files.ts'
import { projectPorts } from '../support/ports.ts'
import { run, serveForTests, temporaryFolder } from './command.ts'
import { projectCommands } from './project-commands.ts'

const berth = await serveForTests()
await berth.server()

const { projects, write } = projectCommands(() => berth)

const BROKEN = { 'index.html': '<link rel="stylesheet" href="/site.css"><h1>one</h1>' }
const WHOLE = { 'index.html': '<h1>two</h1>' }
const WARNING = /Warning: The page \/ asks for .*: \/site\.css \(status 404\)\./

test('--strict of create and push fails after the warning, and the project stays up', async () => {
  write('shop', BROKEN)
  const lenient = await projects('create', 'shop', '--public', '--name', 'lenient')
  expect([lenient.exitCode, lenient.stderr]).toEqual([0, expect.stringMatching(WARNING)])
  await projects('delete', 'lenient', '--yes')

  const made = await projects('create', 'shop', '--public', '--strict')
  expect([made.exitCode, made.stderr]).toEqual([1, expect.stringMatching(WARNING)])
  const url = /is ready at (http:\S+)/.exec(made.stdout)?.[1] ?? ''
  expect(await (await fetch(url)).text()).toContain('one')
  expect((await projects('get', 'shop')).stdout).toMatch(/Warning +The page \/ asks for/)

  // Without a bring-up there is no log that shows it.
  const same = await projects('push', 'shop', '--strict')
  expect([same.exitCode, same.stderr]).toEqual([1, expect.stringMatching(WARNING)])
  expect((await projects('push', 'shop')).exitCode).toBe(0)

  const json = await projects('push', 'shop', '--strict', '--json')
  expect([json.exitCode, json.stderr]).toEqual([1, expect.stringMatching(WARNING)])
  expect(JSON.parse(json.stdout).project.warnings).toHaveLength(1)

  // berth serves the files, so that none is brought up.
  write('shop', WHOLE)
  const fixed = await projects('push', 'shop', '--strict')
  expect([fixed.exitCode, fixed.stderr]).toEqual([0, expect.not.stringContaining('Warning')])
  expect((await projects('get', 'shop')).stdout).not.toContain('Warning')
  write('shop', BROKEN)
  const broken = await projects('push', 'shop', '--strict')
  expect([broken.exitCode, broken.stderr]).toEqual([1, expect.stringMatching(WARNING)])
})

test('--strict of deploy does so, with and without a directory', async () => {
  write('site', BROKEN)
  const strict = await berth.run(['deploy', 'site', '--strict'])
  expect([strict.exitCode, strict.stderr]).toEqual([1, expect.stringMatching(WARNING)])
  const url = /^Published \S+ at (http:\S+)/.exec(strict.stdout)?.[1] ?? ''
  expect(await (await fetch(url)).text()).toContain('one')
  const again = await berth.run(['deploy', '--strict'])
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringMatching(WARNING)])
  expect((await berth.run(['deploy'])).exitCode).toBe(0)
  write('site', WHOLE)
  const fixed = await berth.run(['deploy', 'site', '--strict'])
  expect([fixed.exitCode, fixed.stderr]).toEqual([0, expect.not.stringContaining('Warning')])
})

test('--strict of up does so, and what it has brought up stays', async () => {
  using folder = temporaryFolder()
  const cwd = join(folder.path, 'project')
  const env = {
    HOME: folder.path,
    XDG_STATE_HOME: join(folder.path, 'state'),
    BERTH_PORT: '0',
    BERTH_PROJECT_PORTS: projectPorts(),
    BERTH_LOG_LEVEL: 'error',
  }
  writeWhole(join(cwd, 'berth.yaml'), 'projects:\n  site: { directory: site, visibility: public }\n')
  writeWhole(join(cwd, 'site/index.html'), BROKEN['index.html'])
  try {
    const up = await run(['up', '--detach', '--strict'], { cwd, env })
    expect([up.exitCode, up.stderr]).toEqual([1, expect.stringMatching(WARNING)])
    const url = /is up: (http:\S+)/.exec(up.stdout)?.[1] ?? ''
    expect(await (await fetch(url)).text()).toContain('one')
    // It is ready already, and nothing is sent.
    const again = await run(['up', '--detach', '--strict'], { cwd, env })
    expect([again.exitCode, again.stderr]).toEqual([1, expect.stringMatching(WARNING)])
    expect((await run(['up', '--detach'], { cwd, env })).exitCode).toBe(0)
  } finally {
    await run(['stop'], { cwd, env })
  }
})
