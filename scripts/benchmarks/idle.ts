import { readdirSync, readFileSync } from 'node:fs'
import { type Instance, memoryOf, startInstance, treeOf } from './instance.ts'
import { print, quantile, samples, time } from './measure.ts'

const SERVERS = 200
const MANY = 500
/** Milliseconds after which the work of the starts is over, and milliseconds that are measured. */
const SETTLE_MS = 35_000
const MEASURED_MS = 30_000
const SYSCALLS_MS = 10_000

/** What servers cost while they run and nobody uses them: processor, system calls, writes to disk. */
export async function benchIdle(): Promise<void> {
  await using berth = await startInstance()
  await provision(berth, SERVERS)
  await Bun.sleep(SETTLE_MS)
  const sandboxes = treeOf(berth.pid).filter((pid) => pid !== berth.pid)
  const before = { berth: ticksOf(berth.pid), inside: cpuOfAll(sandboxes), io: writesOf(berth.pid) }
  await Bun.sleep(MEASURED_MS)
  const own = (ticksOf(berth.pid) - before.berth) / MEASURED_MS
  const inside = (cpuOfAll(sandboxes) - before.inside) / MEASURED_MS
  const io = writesOf(berth.pid)
  const syscalls = await countSyscalls(berth.pid)
  const percent = (share: number) => `${(share * 100).toFixed(2)} %`
  print(`${SERVERS} idle servers for ${MEASURED_MS / 1_000} s (isolation ${berth.isolation})`, [
    {
      what: 'of a processor, all together',
      measured: percent(own + inside),
      goal: '≤ 0.5 %',
      met: own + inside <= 0.005,
    },
    { what: 'of a processor, berth', measured: percent(own) },
    { what: `of a processor, ${sandboxes.length} processes of servers`, measured: percent(inside) },
    {
      what: 'written to disk',
      measured: `${io.bytes - before.io.bytes} B in ${io.calls - before.io.calls} calls`,
      goal: '0',
      met: io.bytes === before.io.bytes,
    },
    {
      what: 'system calls of berth in a second',
      measured: syscalls === null ? 'strace is missing' : syscalls.toFixed(1),
    },
  ])
}

/** Commands on one of many servers that run at once. */
export async function benchMany(): Promise<void> {
  await using berth = await startInstance()
  const took = await time(() => provision(berth, MANY))
  const { servers } = await berth.call('GET', '/servers')
  let turn = 0
  const exec = () =>
    berth.call('POST', `/servers/${servers[turn++ % servers.length].id}/exec`, { command: 'true' })
  const taken = await samples(2 * MANY, MANY, exec)
  const sandboxes = treeOf(berth.pid).filter((pid) => pid !== berth.pid)
  const each = sandboxes.reduce((sum, pid) => sum + memoryOf(pid).own, memoryOf(berth.pid).own) / MANY
  const p99 = quantile(taken, 0.99)
  print(`${MANY} running servers (isolation ${berth.isolation})`, [
    { what: 'all provisioned', measured: `${(took / 1_000).toFixed(1)} s` },
    {
      what: 'exec of true over HTTP, each in turn, median',
      measured: `${quantile(taken, 0.5).toFixed(2)} ms`,
    },
    {
      what: 'exec of true over HTTP, each in turn, p99',
      measured: `${p99.toFixed(2)} ms`,
      goal: '≤ 25 ms',
      met: p99 <= 25,
    },
    {
      what: 'private memory, for each server',
      measured: `${(each / 1e6).toFixed(1)} MB`,
      goal: '≤ 48 MB',
      met: each <= 24e9 / MANY,
    },
    { what: 'file descriptors of berth', measured: String(readdirSync(`/proc/${berth.pid}/fd`).length) },
  ])
}

/** Creates servers, twenty at a time. */
async function provision(berth: Instance, count: number): Promise<void> {
  for (let missing = count; missing > 0; missing -= 20) {
    const batch = Array.from({ length: Math.min(20, missing) }, () => berth.call('POST', '/servers'))
    await Promise.all(batch)
  }
}

/**
 * Milliseconds of processor time that a process has used: of each thread, as the scheduler counts it. Threads that
 * have ended are left out.
 */
export function cpuOf(pid: number): number {
  let nanoseconds = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0])
  }
  return nanoseconds / 1e6
}

/** The same, of ended threads too, and in hundredths of a second. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const cpuOfAll = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + cpuOf(pid), 0)

/** Bytes that a process has caused to be written to a disk, and its calls that write to anything. */
function writesOf(pid: number): { bytes: number; calls: number } {
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(io)?.[1])
  return { bytes: field('write_bytes'), calls: field('syscw') }
}

/** System calls of a process in a second; null without strace. */
async function countSyscalls(pid: number): Promise<number | null> {
  if (Bun.which('strace') === null) return null
  const child = Bun.spawn(['strace', '-c', '-f', '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const output = child.stderr.text()
  await Bun.sleep(SYSCALLS_MS)
  child.kill('SIGINT')
  const total = /([\d]+)(?: +\d+)? total$/m.exec(await output)?.[1]
  return total === undefined ? null : Number(total) / (SYSCALLS_MS / 1_000)
}
