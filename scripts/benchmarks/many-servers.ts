import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SimulatedEngine } from '../../test/support/engines/simulated-engine.ts'
import { type Instance, memoryOf, processorTime, startInstance, temporaryDirectory } from './instance.ts'
import { median, megabytes, ms, print, type Row, samples, time } from './measure.ts'

/** Servers that are created at a time. */
const AT_ONCE = 20

const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`

/**
 * Measures what one berth does with thousands of servers on an engine that is simulated, and so costs next to nothing: the
 * driver and all above it are the real ones. On a real engine its own time is in addition.
 *
 * @param all whether they are 5,000, in place of 1,000
 */
export async function benchManyServers(all: boolean): Promise<void> {
  const count = all ? 5_000 : 1_000
  using directory = temporaryDirectory()
  const socket = join(directory.path, 'engine.sock')
  using engine = new SimulatedEngine(socket)
  const data = join(directory.path, 'data')
  const flags = ['--data', data, '--compute', 'docker', '--engine', `unix://${socket}`]
  const start = (): Promise<Instance> => startInstance([...flags, '--spare-servers', '0'])
  const rows: Row[] = []
  const row = (what: string, milliseconds: number, requests: number): void => {
    rows.push({ what, measured: seconds(milliseconds), baseline: `${requests} requests to the engine` })
  }
  {
    await using berth = await start()
    await berth.call('GET', '/servers')
    const empty = memoryOf(berth.pid).own
    const [first, rest] = [
      await makeServers(berth, engine, count / 2),
      await makeServers(berth, engine, count / 2),
    ]
    row(`servers 1 to ${count / 2} created, ${AT_ONCE} at a time`, first.milliseconds, first.requests)
    row(`servers ${count / 2 + 1} to ${count}`, rest.milliseconds, rest.requests)
    rows.push(...(await whileTheyRun(berth, engine, count, empty)))
    const stop = await counted(engine, () => berth[Symbol.asyncDispose]())
    row('all stopped by SIGTERM', stop.milliseconds, stop.requests)
  }
  leaveContainers(engine, data, count)
  {
    let berth: Instance | null = null
    const ready = await counted(engine, async () => {
      berth = await start()
    })
    row('started again until the ready line', ready.milliseconds, ready.requests)
    await using running = berth as unknown as Instance
    const recovered = await counted(engine, () => allRun(running))
    row(
      `… until ${count} containers of an earlier berth are gone and all run`,
      recovered.milliseconds,
      recovered.requests,
    )
    rows.push({ what: 'berth then, private', measured: megabytes(memoryOf(running.pid).own) })
  }
  print(`${count} servers on a simulated engine`, rows)
}

/** Counts the requests to the engine while something runs. */
async function counted(
  engine: SimulatedEngine,
  act: () => PromiseLike<unknown>,
): Promise<{ milliseconds: number; requests: number }> {
  const before = engine.count
  const milliseconds = await time(act)
  return { milliseconds, requests: engine.count - before }
}

async function makeServers(berth: Instance, engine: SimulatedEngine, count: number) {
  return await counted(engine, async () => {
    for (let made = 0; made < count; made += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, () => berth.call('POST', '/servers')))
  })
}

async function whileTheyRun(
  berth: Instance,
  engine: SimulatedEngine,
  count: number,
  empty: number,
): Promise<Row[]> {
  const { own } = memoryOf(berth.pid)
  const before = engine.count
  const list = await samples(7, 1, () => berth.call('GET', '/servers'))
  const {
    servers: [{ id }],
  } = await berth.call('GET', '/servers')
  const exec = await samples(50, 5, () => berth.call('POST', `/servers/${id}/exec`, { command: 'true' }))
  const requests = engine.count - before
  const began = processorTime(berth.pid)
  const idleMs = 10_000
  await Bun.sleep(idleMs)
  const share = (processorTime(berth.pid) - began) / 1_000 / idleMs
  return [
    {
      what: 'GET /servers, median',
      measured: ms(median(list)),
      baseline: `${requests} requests to the engine`,
    },
    { what: 'exec of true on one of them, median', measured: ms(median(exec)) },
    { what: 'of a processor while nobody calls', measured: `${(share * 100).toFixed(2)} %` },
    { what: 'berth, private', measured: megabytes(own), baseline: `without servers ${megabytes(empty)}` },
    { what: 'berth, private, a server', measured: `${((own - empty) / count / 1_000).toFixed(1)} kB` },
  ]
}

/** Leaves as many containers as a berth does that was killed, on a machine that did not notice. */
function leaveContainers(engine: SimulatedEngine, data: string, count: number): void {
  const owner = readFileSync(join(data, 'engine/owner'), 'utf8').trim()
  for (let n = 0; n < count; n += 1) {
    const labels = { 'berth.owner': owner, 'berth.server': `srv_left${n}`, 'berth.ephemeral': 'false' }
    engine.leave(`berth-left-${n}`, labels, true)
  }
}

async function allRun(berth: Instance): Promise<void> {
  while (!(await fetch(`${berth.url}/_berth/ready`)).ok) await Bun.sleep(20)
}
