import { afterEach, beforeEach, expect, test } from 'bun:test'
import { berth } from '@owner/berth-client/testing'
import { OutOfBudget, PlanTooSmall, Reports } from '../reports.js'

// What is changed here is the account: each test has one of its own, made in a few milliseconds.
let account
let reports
beforeEach(async () => {
  account = await berth.account()
  reports = new Reports(account)
})
afterEach(() => account?.remove())

test('402: a budget that is used up is reported', async () => {
  const server = await reports.open()
  await account.change({ budget_cap: 10, credits_used: 10 })
  await expect(reports.write(server, 'complete: done')).rejects.toThrow(OutOfBudget)
})

test('403: what the plan does not allow is told', async () => {
  await account.change({ limits: { tiers: ['small'] } })
  await expect(reports.open('large')).rejects.toThrow(PlanTooSmall)
})

test('502: a backend that fails once is tried again', async () => {
  const { id } = await account.fail('servers.create', { backend: 'fail' }, { times: 1 })
  expect(await reports.open()).toMatch(/^srv_/)
  const faults = await berth.faults.list()
  expect(faults.find((fault) => fault.id === id).hits).toBe(1)
})

test('502: one that goes on failing is told', async () => {
  await account.fail('servers.create', { backend: 'fail' })
  await expect(reports.open()).rejects.toThrow('502 compute_backend_error')
})
