import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { testBerth } from '../support/berth.ts'
import { TaskCalls } from '../support/tasks.ts'

/** Objects, fewer than half of those of one state. */
const MOST_GROWN = 4_000

// From source only: the executable's heap cannot be seen into.
test('a reset keeps nothing of the ended state in memory', async () => {
  await using berth = await testBerth()
  const round = async () => {
    const id = await berth.server()
    await berth.exec(id, 'sleep 1000 & echo')
    await new TaskCalls(berth, id).run('run: echo hi')
    await berth.control('POST', '/reset')
  }
  const objects = () => {
    Bun.gc(true)
    return heapStats().objectCount
  }
  // In the first rounds code is compiled, and kept.
  for (let time = 0; time < 8; time += 1) await round()
  const before = objects()
  // A state is made of some 10,000 objects. Eight leave 500, of code. The collector may take something on the stack for an
  // object of the last one, which the next ones correct, also when Elysia has it run amid a request, which leaves up to 2,000
  // for a while; what is kept of each state only grows.
  let grown = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < 3 && grown >= MOST_GROWN; tries += 1) {
    for (let time = 0; time < 8; time += 1) await round()
    grown = Math.min(grown, objects() - before)
  }
  expect(grown).toBeLessThan(MOST_GROWN)
})
