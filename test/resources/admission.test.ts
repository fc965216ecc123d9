import { expect, test } from 'bun:test'
import { DEFAULT_PLAN } from '../../src/resources/accounts/plan.ts'
import { Plans } from '../../src/resources/accounts/plans.ts'
import { Admission } from '../../src/resources/servers/service.ts'
import { World } from './accounts/world.ts'

test('servers that have no record yet count: 60 at once with a limit of 50 are exactly 50', async () => {
  using world = new World(Date.UTC(2030, 0, 1))
  world.account('a', 1)
  const admission = new Admission(new Plans(world.database, DEFAULT_PLAN), (id) => world.records.count(id))
  const provision = async (n: number) => {
    const counted = admission.admit('a', 'small')
    try {
      // The folder is made, for all at the same time.
      await Bun.sleep(1)
      if (n % 10 === 0) throw new Error('no room')
      world.server(`s${n}`, 'a', 'small')
    } finally {
      counted()
      counted()
    }
  }
  const outcome = await Promise.allSettled(Array.from({ length: 60 }, (_, n) => provision(n)))
  const reasons = outcome.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []))
  expect(reasons.filter((reason) => reason === 'no room').length).toBe(5)
  expect(reasons.filter((reason) => reason.startsWith('The account has the 50 servers')).length).toBe(10)
  expect(world.records.count('a')).toBe(45)

  // What failed gives its place back, once.
  const again = await Promise.allSettled(Array.from({ length: 6 }, (_, n) => provision(100 * n + 101)))
  expect(again.map(({ status }) => status).filter((status) => status === 'fulfilled').length).toBe(5)
})
