import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processesOf, until } from '../support/processes.ts'
import { call, serve } from '../support/serve.ts'

const SERVERS = 10
/** Milliseconds for which a server is looked after when its last command has ended, and some more. */
const LOOKED_AFTER_MS = 3_000
/** Milliseconds in which each watch over a server would look several times. */
const IDLE_MS = 5_000
/** Bytes that Bun itself reads of /proc in that time, generously. One look at ten servers reads more. */
const READ_AT_MOST = 2_000
/** Bytes by which Bun's threads wake one another. A change in the database is a page, at least. */
const WRITTEN_AT_MOST = 2_000

test('while servers idle, nobody looks at their processes, nothing is written, and they sleep', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-idle-'))
  const berth = serve(['--port', '0', '--data', join(folder, 'data'), '--log-level', 'error'])
  try {
    const info = await berth.ready
    for (let n = 0; n < SERVERS; n++) {
      const { id } = (await call(info, 'POST', '/servers')).body
      await call(info, 'POST', `/servers/${id}/exec`, { command: 'true' })
    }
    let before = counters(berth.child.pid)
    await until(async () => {
      const last = before
      await Bun.sleep(LOOKED_AFTER_MS)
      before = counters(berth.child.pid)
      return before.read - last.read < READ_AT_MOST
    }, 'what the commands caused is over')
    await Bun.sleep(IDLE_MS)
    const after = counters(berth.child.pid)
    expect(after.read - before.read).toBeLessThan(READ_AT_MOST)
    expect(after.written - before.written).toBeLessThan(WRITTEN_AT_MOST)
    expect(after.toDisk - before.toDisk).toBe(0)
    expect(after.woken - before.woken).toBeLessThan(SERVERS)
  } finally {
    berth.child.kill('SIGTERM')
    await berth.child.exited
    expect(processesOf(folder)).toEqual([])
    rmSync(folder, { recursive: true, force: true })
  }
}, 120_000)

/** Bytes that a process has read and written so far, of and to anything, and those that it wrote to a disk; and how
 * often the processes of its servers were woken. */
function counters(pid: number): { read: number; written: number; toDisk: number; woken: number } {
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(io)?.[1])
  const woken = descendantsOf(pid).reduce((sum, one) => sum + switchesOf(one), 0)
  return { read: field('rchar'), written: field('wchar'), toDisk: field('write_bytes'), woken }
}

/** Returns an empty list for a process that has ended meanwhile. */
function descendantsOf(pid: number): number[] {
  const threads = ifThere(() => readdirSync(`/proc/${pid}/task`)) ?? []
  const children = threads.flatMap((thread) => {
    const pids = ifThere(() => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')) ?? ''
    return pids.split(' ').filter(Boolean).map(Number)
  })
  return children.flatMap((child) => [child, ...descendantsOf(child)])
}

/** How often a process has gone to sleep; 0 if it has ended. */
function switchesOf(pid: number): number {
  const status = ifThere(() => readFileSync(`/proc/${pid}/status`, 'utf8')) ?? ''
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0)
}

/** Returns what is read of a process, or null if it has ended: ENOENT before, ESRCH while it is read. */
function ifThere<Value>(read: () => Value): Value | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ESRCH'].includes(String(error.code)))
      return null
    throw error
  }
}
