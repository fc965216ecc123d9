import { readFileSync } from 'node:fs'
import { memoryOf, processorTime, startInstance, treeOf } from './instance.ts'
import { megabytes, print } from './measure.ts'

const SERVERS = 200
/** Milliseconds after which the work of the starts is over, and milliseconds that are measured. */
const SETTLE_MS = 35_000
const MEASURED_MS = 30_000

/** Measures what servers cost while they run and nobody uses them: memory, processor, writes to disk. */
export async function benchIdle(): Promise<void> {
  await using berth = await startInstance()
  await berth.call('GET', '/servers')
  await Bun.sleep(1_000)
  const empty = memoryOf(berth.pid)
  for (let made = 0; made < SERVERS; made += 20)
    await Promise.all(Array.from({ length: 20 }, () => berth.call('POST', '/servers')))
  await Bun.sleep(SETTLE_MS)

  const sandboxes = treeOf(berth.pid).filter((pid) => pid !== berth.pid)
  const inSandboxes = (of: (pid: number) => number): number =>
    sandboxes.reduce((sum, pid) => sum + of(pid), 0)
  const grown = Math.max(0, memoryOf(berth.pid).own - empty.own)
  const each = (inSandboxes((pid) => memoryOf(pid).own) + grown) / SERVERS
  const before = {
    own: processorTime(berth.pid),
    inside: inSandboxes(processorTime),
    io: writesOf(berth.pid),
  }
  await Bun.sleep(MEASURED_MS)
  const share = (microseconds: number): number => microseconds / 1_000 / MEASURED_MS
  const own = share(ticksOf(berth.pid) - before.own)
  const inside = share(inSandboxes(processorTime) - before.inside)
  const written = writesOf(berth.pid) - before.io
  const percent = (part: number): string => `${(part * 100).toFixed(2)} %`
  print(`${SERVERS} idle servers for ${MEASURED_MS / 1_000} s (isolation ${berth.isolation})`, [
    {
      what: 'berth without servers, resident',
      measured: megabytes(empty.resident),
      goal: '≤ 90 MB',
      met: empty.resident <= 90e6,
    },
    {
      what: `a further server, private (${sandboxes.length / SERVERS} processes)`,
      measured: megabytes(each),
      goal: '≤ 5 MB',
      met: each <= 5e6,
    },
    {
      what: 'of a processor, all together',
      measured: percent(own + inside),
      goal: '≤ 0.5 %',
      met: own + inside <= 0.005,
    },
    { what: 'of a processor, berth', measured: percent(own) },
    { what: 'written to disk', measured: `${written} B`, goal: '0', met: written === 0 },
  ])
}

/** Returns the bytes that a process has caused to be written to a disk: proc_pid_io(5). */
const writesOf = (pid: number): number =>
  Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])

/** Returns the processor time of a process in microseconds, with that of threads that have ended: proc_pid_stat(5). */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}
