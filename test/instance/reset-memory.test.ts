import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { testBerth } from '../support/berth.ts'
import { TaskCalls } from '../support/tasks.ts'

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
  for (let time = 0; time < 4; time += 1) await round()
  const before = objects()
  for (let time = 0; time < 8; time += 1) await round()
  // Eight states are made of some 80,000 objects.
  expect(objects() - before).toBeLessThan(20_000)
})
