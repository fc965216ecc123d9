import { afterAll, beforeAll, expect, test } from 'bun:test'
import { berth } from '@owner/berth-client/testing'
import { Reports } from '../reports.js'

// Files run in parallel workers. Each has an account of its own, so none sees the servers of another.
let account
let reports
beforeAll(async () => {
  account = await berth.account({ label: `worker ${process.env.JEST_WORKER_ID}` })
  reports = new Reports(account)
})
afterAll(() => account?.remove())

test('the agent writes the report', async () => {
  const server = await reports.open()
  const task = await reports.write(server, 'write: report.md <<< All is well.')
  await berth.wait({ task })
  expect(await reports.read(server)).toBe('All is well.')
})

test('a question of the agent is put to us', async () => {
  const server = await reports.open()
  const id = await reports.write(server, 'ask: For which quarter?')
  const { task } = await berth.wait({ task: id })
  expect(task).toMatchObject({ status: 'awaiting_input', question: 'For which quarter?' })
})
