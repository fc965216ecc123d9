import { type Instance, startInstance, temporaryFolder } from './instance.ts'
import { median, ms, print, type Row, samples, time, times } from './measure.ts'

/** How the cost of listing, starting and stopping grows with servers that sleep. */
export async function benchSleeping(): Promise<void> {
  using folder = temporaryFolder()
  const few = await measureWith(10, folder.path)
  const many = await measureWith(1_000, folder.path)
  const start = await time(async () => {
    await using _berth = await startInstance(folder.path)
  })
  const row = (what: string, value: number, base: number): Row => ({
    what: `${what}, 1,000 sleeping`,
    measured: ms(value),
    baseline: `10 sleeping: ${ms(base)}`,
    ratio: times(value / base),
  })
  print('Sleeping servers', [
    row('list', many.list, few.list),
    row('start and stop of one', many.cycle, few.cycle),
    { what: 'start and stop of berth, 1,000 sleeping', measured: ms(start) },
  ])
}

async function measureWith(count: number, folder: string): Promise<{ list: number; cycle: number }> {
  await using berth = await startInstance(folder)
  await fillUp(berth, count)
  const { servers } = await berth.call('GET', '/servers')
  const path = `/servers/${servers[Math.floor(count / 2)]?.id}/actions`
  const list = await samples(50, 10, () => berth.call('GET', '/servers'))
  const cycle = await samples(10, 2, async () => {
    await berth.call('POST', path, { action: 'start' })
    await berth.call('POST', path, { action: 'stop' })
  })
  return { list: median(list), cycle: median(cycle) }
}

/** Provisions until there are `count`, twenty at a time, and puts each to sleep. */
async function fillUp(berth: Instance, count: number): Promise<void> {
  let missing = count - (await berth.call('GET', '/servers')).servers.length
  for (; missing > 0; missing -= 20) {
    const batch = Array.from({ length: Math.min(20, missing) }, async () => {
      const { id } = await berth.call('POST', '/servers')
      await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
    })
    await Promise.all(batch)
  }
}
