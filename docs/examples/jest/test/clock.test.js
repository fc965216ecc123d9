import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { OutOfBudget, Reports } from '../reports.js'
import { control, createAccount, startInstance } from './berth.js'

// The clock is one for a whole instance: a test that moves it starts its own instance.
let instance
beforeAll(async () => {
  instance = await startInstance('--freeze', '2030-01-31T23:00:00Z')
})
afterAll(() => instance.stop())

test('the budget is there again in the next month', async () => {
  const account = await createAccount({ budget_cap: 10 }, instance)
  const reports = new Reports(account)
  const server = await reports.open()
  await account.change({ credits_used: 10 })
  await expect(reports.write(server, 'complete: done')).rejects.toThrow(OutOfBudget)

  await control('POST', '/clock', { advance: '2h' }, instance)
  expect(await reports.write(server, 'complete: done')).toMatch(/^task_/)
})
