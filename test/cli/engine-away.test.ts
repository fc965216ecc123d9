import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { SimulatedEngine } from '../support/engines/simulated-engine.ts'
import { command } from '../support/serve.ts'
import { run, serve, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

test('a server whose engine does not respond is shown as unreachable, with what was measured last', async () => {
  using here = temporaryFolder()
  const socket = join(here.path, 'engine.sock')
  using engine = new SimulatedEngine(socket)
  await using berth = await serve(['--compute', 'docker', '--engine', `unix://${socket}`])
  const [known, never] = [await berth.server(), await berth.server()]
  const { usage: before } = await berth.json('usage', 'get', known)
  expect(before).toMatchObject({ memory_bytes: 5_000_000, processes: 2, unreachable: null })
  const goOn = engine.stop()
  const { servers } = await berth.json('usage')
  const of = (id: string) => servers.find((one: { server_id: string }) => one.server_id === id)
  const unreachable = expect.stringContaining('has not responded for 3 seconds. Check that its engine')
  expect(of(known)).toMatchObject({ status: 'running', memory_bytes: 5_000_000, processes: 2, unreachable })
  expect(of(known).cpu_percent).toBeGreaterThan(0)
  expect(of(known).measured_at).toBe(before.measured_at)
  expect(of(never)).toMatchObject({ status: 'running', unreachable })
  expect(of(never).measured_at < before.measured_at).toBe(true)
  const line = (text: string): string => text.split('\n').find((one) => one.startsWith(known)) ?? ''
  expect(line((await berth.run(['usage'])).stdout)).toMatch(/ unreachable +– +– /)
  expect(line((await berth.run(['servers'])).stdout)).toContain(' unreachable ')
  const alone = await berth.run(['usage', 'get', known])
  expect(alone).toMatchObject({ exitCode: 1, stderr: unreachable })
  goOn()
  expect(line((await berth.run(['usage'])).stdout)).toMatch(/ running +\d/)
  expect((await berth.json('usage', 'get', never)).usage).toMatchObject({ unreachable: null, processes: 2 })
}, 60_000)

test('a command that waits says on a terminal what for, and doctor what it tries; elsewhere they say nothing', async () => {
  using here = temporaryFolder()
  const socket = join(here.path, 'engine.sock')
  using engine = new SimulatedEngine(socket)
  const flags = ['--compute', 'docker', '--engine', `unix://${socket}`]
  await using berth = await serve(flags)
  const goOn = engine.stop()
  const { cwd } = berth
  {
    await using made = onTerminal([...command, 'servers', 'create'], { cwd })
    await using tried = onTerminal([...command, 'doctor', ...flags], { cwd })
    const piped = run(['servers', 'create', '-q'], { cwd })
    await Promise.all([made.shows(/provision a server … \d s/), tried.shows(/try docker … \d s/)])
    goOn()
    await Promise.all([made.exited, tried.exited])
    // The line is gone. On a busy machine the engine may have been given up, after 8 seconds.
    const ends = ['Provisioned srv_', 'berth: '].map((said) => `\r\x1b[K${said}`)
    expect(ends.some((end) => made.output().includes(end))).toBe(true)
    expect((await piped).stderr).not.toContain('…')
  }
}, 60_000)

test('a server whose engine this berth does not use is shown as unreachable, and why', async () => {
  using here = temporaryFolder()
  const socket = join(here.path, 'engine.sock')
  using _engine = new SimulatedEngine(socket)
  const cwd = here.path
  let id = ''
  {
    await using first = await serve(['--compute', 'docker', '--engine', `unix://${socket}`], { cwd })
    id = await first.server()
    expect((await first.run(['servers', 'get', id])).stdout).toMatch(/Status +running\n/)
  }
  await using second = await serve(['--isolation', 'none'], { cwd })
  const { stdout } = await second.run(['servers', 'get', id])
  expect(stdout).toMatch(/Status +unreachable: .*berth servers move/)
}, 60_000)
