import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startBerth } from '@owner/berth-client/testing'
import { OutOfBudget, Reports } from '../reports.js'

// The clock is one for a whole instance: a test that moves it starts its own instance.
let instance
beforeAll(async () => {
  instance = await startBerth('--freeze', '2030-01-31T23:00:00Z')
})
afterAll(() => instance.stop())

test('the budget is there again in the next month', async () => {
  const account = await instance.account({ budget_cap: 10 })
  const reports = new Reports(account)
  const server = await reports.open()
  await account.change({ credits_used: 10 })
  await expect(reports.write(server, 'complete: done')).rejects.toThrow(OutOfBudget)

  await instance.clock.advance('2h')
  expect(await reports.write(server, 'complete: done')).toMatch(/^task_/)
})
