import { describe, expect, test } from 'bun:test'
import type { Page, WebSocket } from 'playwright-core'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('what servers use, on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  const isUsage = (socket: WebSocket): boolean => /\/usage(?:\/servers)?$/.test(socket.url())

  const setHidden = (page: Page, isHidden: boolean): Promise<unknown> =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)

  test('bars follow what a server does, on the list and on its screen, and the page never asks again', async () => {
    const { berth } = tests
    const server = await berth.server({ task: 'busy' })
    await using watched = await tests.open('/dashboard/servers')
    const { page, requests, problems } = watched
    await page.getByRole('meter', { name: /^CPU: \d+ % of 1 CPU$/ }).waitFor()
    await page.getByRole('meter', { name: /^Storage: \d/ }).waitFor()
    await berth.exec(server, "sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $! > pid")
    const used = page.getByRole('meter', { name: /^CPU: [1-9]/ })
    await used.waitFor()
    await page.getByRole('link', { name: 'busy' }).click()
    await page.getByRole('heading', { name: 'busy' }).waitFor()
    await used.waitFor()
    await berth.exec(server, 'kill $(cat pid)')
    await page.getByRole('meter', { name: /^CPU: 0 %/ }).waitFor()
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await page.getByRole('meter', { name: /^CPU: –/ }).waitFor()
    // Once for each screen, for what the stream does not send.
    const asked = requests.filter((url) => /^http.*\/usage(?:\/servers)?$/.test(url))
    expect(asked).toHaveLength(2)
    expect(problems).toEqual([])
    await berth.call('DELETE', `/servers/${server}`)
  })

  test('nothing is measured for a screen that does not show it, or for a hidden page', async () => {
    await tests.berth.server({ task: 'quiet' })
    await using watched = await tests.open('/dashboard/tasks')
    const { page } = watched
    const next = (): Promise<WebSocket> => page.waitForEvent('websocket', isUsage)
    const closed = (socket: WebSocket) => new Promise<unknown>((resolve) => socket.on('close', resolve))
    const [first] = await Promise.all([next(), page.getByRole('link', { name: 'Servers' }).click()])
    await page.getByRole('meter', { name: /^Memory: \d/ }).waitFor()
    await Promise.all([closed(first), setHidden(page, true)])
    const [second] = await Promise.all([next(), setHidden(page, false)])
    const left = closed(second)
    await page.getByRole('link', { name: 'Tasks' }).click()
    await left
  })
})
