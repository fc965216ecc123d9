import { memoryOf, startInstance, treeOf } from './instance.ts'
import { print } from './measure.ts'

const SERVERS = 20
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Memory of an idle berth, and what a further idle server adds. */
export async function benchMemory(): Promise<void> {
  await using berth = await startInstance()
  await berth.call('GET', '/servers')
  await Bun.sleep(1_000)
  const idle = memoryOf(berth.pid)

  for (let n = 0; n < SERVERS; n++) await berth.call('POST', '/servers')
  await Bun.sleep(1_000)
  const sandboxes = treeOf(berth.pid).filter((pid) => pid !== berth.pid)
  const own = sandboxes.reduce((sum, pid) => sum + memoryOf(pid).own, 0)
  const grown = memoryOf(berth.pid).own - idle.own
  const each = (own + Math.max(0, grown)) / SERVERS

  print(`Memory (isolation ${berth.isolation})`, [
    {
      what: 'idle berth, resident',
      measured: megabytes(idle.resident),
      goal: '≤ 90 MB',
      met: idle.resident <= 90e6,
    },
    { what: 'idle berth, private', measured: megabytes(idle.own) },
    {
      what: `a further idle server, private (of ${SERVERS}, ${sandboxes.length / SERVERS} processes each)`,
      measured: megabytes(each),
      goal: '≤ 5 MB',
      met: each <= 5e6,
    },
  ])
}
