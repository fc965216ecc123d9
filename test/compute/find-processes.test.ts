import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { MARKER_NAME, readMarker, rememberProcesses } from '../../src/compute/processes.ts'
import { readListeningSockets } from '../../src/system/sockets.ts'
import { until } from './bench.ts'

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

test('a marker is found before a large environment, and no more than its beginning is read', async () => {
  const large = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`LARGE_${n}`, 'x'.repeat(100_000)]))
  const begin = (env: Record<string, string>) =>
    Bun.spawn(['/bin/sleep', '600'], { env, stdio: ['ignore', 'ignore', 'ignore'] })
  await using before = begin({ [MARKER_NAME]: 'ab'.repeat(16), ...large })
  await using behind = begin({ ...large, [MARKER_NAME]: 'ab'.repeat(16) })
  // Until then a process has the environment of the one that started it.
  for (const { pid } of [before, behind])
    await until('it runs its program', () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n')
  expect(readMarker(before.pid)).toBe('ab'.repeat(16))
  expect(readMarker(behind.pid)).toBe(null)
})

test('listening sockets are found among very many others', async () => {
  const open = { hostname: '127.0.0.1', port: 0, socket: { data() {} } }
  using far = Bun.listen(open)
  const connections = await Promise.all(
    Array.from({ length: 2_000 }, () => Bun.connect({ ...open, port: far.port })),
  )
  const listeners = Array.from({ length: 50 }, () => Bun.listen(open))
  try {
    const found = readListeningSockets(process.pid) ?? []
    expect(found.filter(({ listens }) => !listens)).toEqual([])
    const ports = found.map(({ port }) => port)
    for (const { port } of [far, ...listeners]) expect(ports).toContain(port)
  } finally {
    for (const one of [...connections, ...listeners]) 'stop' in one ? one.stop(true) : one.terminate()
  }
})
