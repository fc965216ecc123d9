import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { berthForTests } from '../support/berth.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests()

/** Returns the longest time that a request takes while something is under way, in milliseconds. */
async function longestDuring(work: Promise<unknown>): Promise<number> {
  let isOver = false
  void work.finally(() => {
    isOver = true
  })
  let longest = 0
  while (!isOver) {
    const began = performance.now()
    await berth.call('GET', '/servers')
    longest = Math.max(longest, performance.now() - began)
    await Bun.sleep(5)
  }
  await work
  return longest
}

/** Reads the environments of all processes whole, and returns how long that takes, in milliseconds, and their bytes. */
function readEnvironments(): { ms: number; bytes: number } {
  const began = performance.now()
  let bytes = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      bytes += readFileSync(`/proc/${pid}/environ`).length
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  return { ms: performance.now() - began, bytes }
}

test('processes that share megabytes of environment do not hold up requests at the end of another server', async () => {
  const [large, other] = [await berth.server(), await berth.server()]
  const variables = Array.from({ length: 14 }, (_, n) => `V${n}=$X`).join(' ')
  // Children that wait to open a pipe, without a program of their own, so that they share their memory.
  const fork = 'for n in $(seq 900); do (read line < pipe) & done; echo > ready; wait'
  await berth.exec(
    large,
    `mkfifo pipe; X=$(head -c 130000 /dev/zero | tr '\\0' x); export ${variables}; sh -c '${fork}' > /dev/null 2>&1 &`,
  )
  await until(async () => (await berth.exec(large, 'test -e ready')).exitCode === 0, 'all to be forked')
  const whole = readEnvironments()
  expect(whole.bytes).toBeGreaterThan(10 ** 9)
  const stop = berth.call('POST', `/servers/${other}/actions`, { action: 'stop' })
  // Against what this machine would need for all of it, as busy as it is.
  expect(await longestDuring(stop)).toBeLessThan(whole.ms)
  for (const id of [large, other]) expect((await berth.call('DELETE', `/servers/${id}`)).status).toBe(200)
})
