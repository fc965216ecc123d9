import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'

/** Milliseconds for which a request may wait for what berth does about another server, on a busy machine. */
const LONGEST_MS = 700

let berth: TestBerth
beforeAll(async () => {
  berth = await testBerth()
})
afterAll(() => berth[Symbol.asyncDispose]())

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
  const stop = berth.call('POST', `/servers/${other}/actions`, { action: 'stop' })
  expect(await longestDuring(stop)).toBeLessThan(LONGEST_MS)
  for (const id of [large, other]) expect((await berth.call('DELETE', `/servers/${id}`)).status).toBe(200)
})
