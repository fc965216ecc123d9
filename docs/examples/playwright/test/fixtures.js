import { berth } from '@owner/berth-client/testing'
import { test as base } from '@playwright/test'

/** How a request context speaks for an account. */
const as = ({ baseUrl, apiKey }) => ({
  baseURL: baseUrl,
  extraHTTPHeaders: { authorization: `Bearer ${apiKey}` },
})

export const test = base.extend({
  /** One account for each worker: tests of one worker run one after the other, and none meets those of another. */
  account: [
    async ({}, use, { workerIndex }) => {
      const account = await berth.account({ label: `worker ${workerIndex}` })
      await use(account)
      await account.remove()
    },
    { scope: 'worker' },
  ],

  // Playwright's own `request` then calls berth with the key of that account.
  baseURL: ({ account }, use) => use(as(account).baseURL),
  extraHTTPHeaders: ({ account }, use) => use(as(account).extraHTTPHeaders),

  /** An account of this test alone, for tests that change its plan or have its requests fail. */
  own: async ({ playwright }, use) => {
    const account = await berth.account()
    const request = await playwright.request.newContext(as(account))
    await use({ account, request })
    await request.dispose()
    await account.remove()
  },
})

export { expect } from '@playwright/test'
