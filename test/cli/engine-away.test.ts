import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { SimulatedEngine } from '../support/engines/simulated-engine.ts'
import { serve, temporaryFolder } from './command.ts'

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
