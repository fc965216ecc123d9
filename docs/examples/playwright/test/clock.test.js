import { test as base, expect } from '@playwright/test'
import { control, createAccount, startInstance } from './berth.js'

// The clock is one for a whole instance: a test that moves it starts its own instance.
const test = base.extend({
  instance: async ({}, use) => {
    const instance = await startInstance('--freeze', '2030-01-31T23:00:00Z')
    await use(instance)
    await instance.stop()
  },
})

test('the budget is there again in the next month', async ({ instance, playwright }) => {
  const { baseUrl, apiKey, change } = await createAccount({ budget_cap: 10 }, instance)
  const request = await playwright.request.newContext({
    baseURL: baseUrl,
    extraHTTPHeaders: { authorization: `Bearer ${apiKey}` },
  })
  await change({ credits_used: 10 })
  expect((await request.post('/servers')).status()).toBe(403)
  await control('POST', '/clock', { advance: '2h' }, instance)
  expect((await request.post('/servers')).status()).toBe(201)
})
