import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerHandle } from '../../src/compute/driver.ts'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import { EngineNotes } from '../../src/compute/engine/owner.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { engineDriver } from '../support/engines/engine-rig.ts'
import { SimulatedEngine } from '../support/engines/simulated-engine.ts'
import { LIMITS, run } from './bench.ts'

/** More servers than ends of instances that are kept of which nobody has asked. */
const SERVERS = 1_100

/** Servers that start at once. */
const AT_ONCE = 20

describe('many servers on an engine', () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-compute-'))
  let engine: SimulatedEngine
  let driver: EngineDriver
  const servers: { handle: ServerHandle; sandbox: Sandbox }[] = []

  /** Starts servers, some at a time. */
  async function startServers(from: number, count: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, n) => `srv_${from + n}`)
    const next = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
        const handle = await driver.create(id)
        servers.push({ handle, sandbox: await driver.start(id, handle, LIMITS) })
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
  }

  beforeAll(() => {
    const socket = join(directory, 'engine.sock')
    engine = new SimulatedEngine(socket)
    driver = engineDriver(socket, join(directory, 'data'))
  })
  afterAll(async () => {
    await Promise.all(servers.map(({ sandbox }) => sandbox.stop()))
    engine[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  test('cost the same number of requests each and none while they are used, and the reason of each end is known', async () => {
    await startServers(0, 1)
    const [first] = servers
    if (first === undefined) throw new Error('no server')
    const [eldest = ''] = engine.containers.keys()
    const before = engine.count
    await startServers(1, 10)
    const ofTen = engine.count - before
    await startServers(11, SERVERS - 11)
    expect((engine.count - before) / (SERVERS - 1)).toBeLessThanOrEqual(ofTen / 10)
    const used = engine.count
    await driver.checkFiles(first.handle)
    expect((await run(first.sandbox, 'true')).exitCode).toBe(0)
    expect(engine.count).toBe(used)
    engine.killForMemory(eldest)
    expect((await first.sandbox.exited).reason).toContain('It ran out of memory.')
  }, 120_000)

  test('that an earlier berth has left are ended some at a time, and those of this one stay', async () => {
    const { owner } = new EngineNotes(join(directory, 'data'))
    const labels = { 'berth.owner': owner, 'berth.server': 'srv_left', 'berth.ephemeral': 'false' }
    const running = engine.containers.size
    for (let n = 0; n < 300; n += 1) engine.leave(`berth-left-${n}`, labels, true)
    engine.leave('berth-other', { ...labels, 'berth.owner': 'another' }, true)
    engine.removalMs = 5
    engine.mostAtOnce = 0
    await driver.takeStock([], []).end()
    expect(engine.containers.size).toBe(running + 1)
    expect(engine.mostAtOnce).toBeLessThanOrEqual(64)
  }, 60_000)
})
