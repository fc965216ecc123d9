import { join } from 'node:path'
import { type Instance, startInstance, temporaryDirectory } from './instance.ts'
import { median, ms, print, samples, time } from './measure.ts'

const SERVERS = 10
const FILES = 50
const ROUNDS = 7

/** Measures what it takes to begin anew: with an account, a reset, an instance or a snapshot. */
export async function benchStates(): Promise<void> {
  using directory = temporaryDirectory()
  await using berth = await startInstance(['--data', join(directory.path, 'data')])
  const account = async (): Promise<void> => {
    const { id } = await berth.control('POST', '/accounts')
    await berth.control('DELETE', `/accounts/${id}`)
  }
  const instance = async (): Promise<void> => {
    await using _own = await startInstance()
  }
  const reset = () => berth.control('POST', '/reset')
  const rows = [
    { what: 'an account, made and removed', taken: await samples(20, 3, account) },
    { what: 'an instance, started and stopped', taken: await samples(10, 2, instance) },
    { what: 'a reset of nothing', taken: await samples(20, 3, reset) },
  ]
  const full = { reset: [] as number[], save: [] as number[], restore: [] as number[] }
  for (let round = 0; round < ROUNDS; round += 1) {
    await fill(berth)
    full.save.push(await time(() => berth.control('POST', '/snapshots', { name: 'bench' })))
    full.restore.push(await time(() => berth.control('POST', '/snapshots/bench/restore')))
    // Until its servers run again: what is reset is then what was made.
    await ready(berth)
    full.reset.push(await time(reset))
  }
  const filled = `${SERVERS} running servers with ${FILES} files each`
  rows.push({ what: `a reset of ${filled}`, taken: full.reset })
  rows.push({ what: `a snapshot of ${filled}`, taken: full.save })
  rows.push({ what: `the return to a snapshot of ${filled}`, taken: full.restore })
  print(
    'To begin anew, medians',
    rows.map(({ what, taken }) => ({ what, measured: ms(median(taken)) })),
  )
}

async function fill(berth: Instance): Promise<void> {
  const make = async (): Promise<void> => {
    const { id } = await berth.call('POST', '/servers')
    const command = `for n in $(seq ${FILES}); do echo hello > file-$n; done`
    await berth.call('POST', `/servers/${id}/exec`, { command })
  }
  await Promise.all(Array.from({ length: SERVERS }, make))
}

async function ready(berth: Instance): Promise<void> {
  while (!(await fetch(`${berth.url}/_berth/ready`)).ok) await Bun.sleep(2)
}
