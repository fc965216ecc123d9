import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { rememberProcesses } from '../../src/compute/find-processes.ts'

/** The number of the process that was started last; who may write it chooses the next one's (pid_namespaces(7)). */
const LAST_PID = '/proc/sys/kernel/ns_last_pid'

const start = () => Bun.spawn(['sleep', '600'], { stdio: ['ignore', 'ignore', 'ignore'] })

function mayChoosePids(): boolean {
  try {
    writeFileSync(LAST_PID, readFileSync(LAST_PID))
    return true
  } catch {
    console.error('SKIP a process with the number of another: this user may not choose numbers')
    return false
  }
}

test.skipIf(!mayChoosePids())(
  'a process is not taken for one that had its number before',
  async () => {
    await using living = start()
    const ended = start()
    const find = rememberProcesses([living.pid, ended.pid])
    expect(find()).toEqual([living.pid, ended.pid])
    // The kernel counts the time of a start in hundredths of a second.
    await Bun.sleep(20)
    ended.kill('SIGKILL')
    await ended.exited
    for (;;) {
      writeFileSync(LAST_PID, String(ended.pid - 1))
      await using other = start()
      // Another program may have taken the number first.
      if (other.pid !== ended.pid) continue
      expect(find()).toEqual([living.pid])
      return
    }
  },
  20_000,
)
