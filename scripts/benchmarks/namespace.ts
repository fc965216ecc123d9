import { type Instance, startInstance } from './instance.ts'
import { median, ms, print, type Row, samples, times } from './measure.ts'

const ROUNDS = 8
const PER_ROUND = 5

/** An earlier executable of berth to compare with, if one is named. */
const earlier = process.env.BERTH_BASELINE || null

/** Namespaces as a server has them, all but that of the network. */
const SANDBOX = [
  'bwrap',
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--dev-bind',
  '/',
  '/',
]

/**
 * What a network of its own costs when a server is made: of the kernel, and from POST to the first command's end without
 * servers kept ready. With BERTH_BASELINE=EXECUTABLE an earlier berth is measured in turn.
 */
export async function benchNamespace(): Promise<void> {
  const rows: Row[] = []
  if (Bun.which('bwrap') !== null) rows.push(await kernelRow())
  await using berth = await startInstance(undefined, ['--spare-servers', '0'])
  await using before = earlier ? await startInstance(undefined, spareless(earlier), earlier) : null
  const taken = { now: [] as number[], before: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    const measureNow = async () => taken.now.push(...(await provisioning(berth, round === 0)))
    const measureThen = async () => before && taken.before.push(...(await provisioning(before, round === 0)))
    for (const measure of round % 2 === 0 ? [measureNow, measureThen] : [measureThen, measureNow])
      await measure()
  }
  const [now, atFirst] = [median(taken.now), median(taken.before)]
  rows.push({
    what: 'POST /servers → first command done, none kept ready',
    measured: ms(now),
    ...(before && { baseline: `earlier berth ${ms(atFirst)}`, ratio: times(now / atFirst) }),
  })
  print(`A network for each new server (isolation ${berth.isolation})`, rows)
}

/** A program in namespaces with and without one of the network. */
async function kernelRow(): Promise<Row> {
  const spawn = (more: string[]) => () =>
    Bun.spawn([...SANDBOX, ...more, 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited
  const taken = { own: [] as number[], shared: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    taken.own.push(...(await samples(PER_ROUND, 1, spawn(['--unshare-net']))))
    taken.shared.push(...(await samples(PER_ROUND, 1, spawn([]))))
  }
  const [own, shared] = [median(taken.own), median(taken.shared)]
  return {
    what: 'bwrap with a network namespace, by itself',
    measured: ms(own),
    baseline: `without one ${ms(shared)}`,
    ratio: times(own / shared),
  }
}

/** The flags by which an executable keeps no servers ready; a berth from before that knows none. */
function spareless(program: string): string[] {
  const { stdout } = Bun.spawnSync([program, 'serve', '--help'])
  return stdout.toString().includes('--spare-servers') ? ['--spare-servers', '0'] : []
}

async function provisioning(berth: Instance, isFirst: boolean): Promise<number[]> {
  const made: string[] = []
  const taken = await samples(PER_ROUND, isFirst ? 5 : 1, async () => {
    const { id } = await berth.call('POST', '/servers')
    made.push(id)
    await berth.call('POST', `/servers/${id}/exec`, { command: 'true' })
  })
  for (const id of made) await berth.call('DELETE', `/servers/${id}`)
  return taken
}
