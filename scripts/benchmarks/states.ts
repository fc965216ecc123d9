import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Instance, startInstance, temporaryFolder } from './instance.ts'
import { median, ms, print, time, times } from './measure.ts'

const SERVERS = 10
const FILES = 50
const ROUNDS = 7

/** Milliseconds that a reset of some servers may take, and a snapshot with the way back. */
const GOALS = { reset: 60, both: 150 }

/** How long a reset takes, and a snapshot and its restoration, with servers that run and have files. */
export async function benchStates(): Promise<void> {
  using folder = temporaryFolder()
  const dataDir = join(folder.path, 'data')
  await using berth = await startInstance(dataDir)
  const taken = { reset: [] as number[], save: [] as number[], restore: [] as number[], copy: [] as number[] }
  const resident: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    await fill(berth)
    taken.save.push(await time(() => berth.control('POST', '/snapshots', { name: 'bench' })))
    const copy = join(folder.path, 'copy')
    taken.copy.push(await time(() => cpSync(join(dataDir, 'servers'), copy, { recursive: true })))
    rmSync(copy, { recursive: true, force: true })
    taken.restore.push(await time(() => berth.control('POST', '/snapshots/bench/restore')))
    // Until its servers run again: what is reset is then what was made.
    await ready(berth)
    taken.reset.push(await time(() => berth.control('POST', '/reset')))
    resident.push((await Bun.file(`/proc/${berth.pid}/statm`).text()).split(' ').map(Number)[1] ?? 0)
  }
  const [reset, save, restore, copy] = [taken.reset, taken.save, taken.restore, taken.copy].map(median)
  const both = (save ?? 0) + (restore ?? 0)
  const of = `${SERVERS} running servers with ${FILES} files each`
  const mb = (pages = 0) => `${Math.round((pages * 4_096) / 1e6)} MB`
  print('States', [
    {
      what: `reset, ${of}`,
      measured: ms(reset ?? 0),
      goal: `≤ ${GOALS.reset} ms`,
      met: (reset ?? 0) <= GOALS.reset,
    },
    {
      what: `snapshot and restore, ${of}`,
      measured: `${ms(save ?? 0)} + ${ms(restore ?? 0)} = ${ms(both)}`,
      baseline: `a copy of the files alone: ${ms(copy ?? 0)}`,
      ratio: times(both / (copy ?? 1)),
      goal: `≤ ${GOALS.both} ms`,
      met: both <= GOALS.both,
    },
    {
      what: `memory after the first and after ${ROUNDS} rounds`,
      measured: `${mb(resident[0])}, ${mb(resident.at(-1))}`,
    },
  ])
}

async function fill(berth: Instance): Promise<void> {
  const make = async () => {
    const { id } = await berth.call('POST', '/servers')
    const command = `for n in $(seq ${FILES}); do echo hello > file-$n; done`
    await berth.call('POST', `/servers/${id}/exec`, { command })
  }
  await Promise.all(Array.from({ length: SERVERS }, make))
}

async function ready(berth: Instance): Promise<void> {
  while (!(await fetch(`${berth.url}/_berth/ready`)).ok) await Bun.sleep(2)
}
