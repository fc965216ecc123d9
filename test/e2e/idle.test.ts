import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processesOf, until } from '../support/processes.ts'
import { call, serve } from '../support/serve.ts'

const SERVERS = 10
/** Milliseconds in which each watch over a server would look several times. */
const IDLE_MS = 5_000
/** Bytes that Bun itself reads of /proc in that time, generously. One look at ten servers reads more. */
const READ_AT_MOST = 2_000

test('nobody looks at the processes of idle servers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-idle-'))
  const berth = serve(['--port', '0', '--data', join(folder, 'data'), '--log-level', 'error'])
  try {
    const info = await berth.ready
    for (let n = 0; n < SERVERS; n++) {
      const { id } = (await call(info, 'POST', '/servers')).body
      await call(info, 'POST', `/servers/${id}/exec`, { command: 'true' })
    }
    // The last command is looked after for some seconds.
    let before = bytesRead(berth.child.pid)
    await until(async () => {
      const last = before
      await Bun.sleep(1_000)
      before = bytesRead(berth.child.pid)
      return before - last < READ_AT_MOST / 5
    }, 'what the commands caused is over')
    await Bun.sleep(IDLE_MS)
    const after = bytesRead(berth.child.pid)
    expect(after - before).toBeLessThan(READ_AT_MOST)
  } finally {
    berth.child.kill('SIGTERM')
    await berth.child.exited
    expect(processesOf(folder)).toEqual([])
    rmSync(folder, { recursive: true, force: true })
  }
}, 60_000)

/** Bytes that a process has read so far, of /proc too. */
function bytesRead(pid: number): number {
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  return Number(/^rchar: (\d+)/m.exec(io)?.[1])
}
