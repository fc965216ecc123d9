import { expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** Most bytes that a page loads until its rows are there. */
const MOST_BYTES = 300_000

test.skipIf(browserPath === null)(
  'the first view of the dashboard is small after a thousand requests with long responses (needs Chromium)',
  async () => {
    const { berth, open } = tests
    for (let server = 0; server < 20; server += 1) await berth.server({ task: 'x'.repeat(1_000) })
    for (let sent = 0; sent < 1_000; sent += 20)
      await Promise.all(Array.from({ length: 20 }, (_, n) => berth.call('GET', `/servers?n=${sent + n}`)))
    // Refused, so that the timeline has it too, which leaves reads out.
    await berth.call('DELETE', '/keys/the_last_one')
    const { body: whole } = await berth.control('GET', '/requests?limit=1000')
    expect(JSON.stringify(whole).length).toBeGreaterThan(10_000_000)
    for (const path of ['/dashboard', '/dashboard/requests']) {
      await using watched = await open('/dashboard/usage')
      const { page, problems } = watched
      const session = await page.context().newCDPSession(page)
      await session.send('Network.enable')
      let bytes = 0
      session.on('Network.loadingFinished', ({ encodedDataLength }) => {
        bytes += encodedDataLength
      })
      session.on('Network.webSocketFrameReceived', ({ response }) => {
        bytes += response.payloadData.length
      })
      await page.goto(new URL(path, page.url()).href)
      await page.getByText('/keys/the_last_one').first().waitFor()
      expect(bytes).toBeLessThan(MOST_BYTES)
      // The bodies come when a request is opened.
      if (path === '/dashboard/requests') {
        await page.getByText('/keys/the_last_one').first().click()
        await page.getByText('"not_found"').waitFor()
      }
      expect(problems).toEqual([])
    }
  },
  120_000,
)

const tests = dashboardTests()
