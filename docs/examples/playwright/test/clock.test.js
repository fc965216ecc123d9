import { startBerth } from '@owner/berth-client/testing'
import { test as base, expect } from '@playwright/test'

// The clock is one for a whole instance: a test that moves it starts its own instance.
const test = base.extend({
  instance: async ({}, use) => {
    const instance = await startBerth('--freeze', '2030-01-31T23:00:00Z')
    await use(instance)
    await instance.stop()
  },
})

test('the budget is there again in the next month', async ({ instance, playwright }) => {
  const account = await instance.account({ budget_cap: 10 })
  const request = await playwright.request.newContext({
    baseURL: account.baseUrl,
    extraHTTPHeaders: { authorization: `Bearer ${account.apiKey}` },
  })
  await account.change({ credits_used: 10 })
  expect((await request.post('/servers')).status()).toBe(403)
  await instance.clock.advance('2h')
  expect((await request.post('/servers')).status()).toBe(201)
})
