import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('a terminal on the dashboard that is flooded (needs Chromium)', () => {
  const tests = dashboardTests()

  test('the page is sent what it can draw, and then shows the end', async () => {
    const serverId = await tests.berth.server({ tier: 'medium' })
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/terminals`, {
      command: 'read -r go; seq 1 5000000; echo end-$((6*7)); sleep 300',
    })
    await using watched = await tests.open('/dashboard/servers')
    const { page, problems } = watched
    let bytes = 0
    page.on('websocket', (socket) => {
      if (!socket.url().includes('/attach')) return
      socket.on('framereceived', ({ payload }) => {
        bytes += payload.length
      })
    })
    await page.goto(`${tests.berth.info.base_url}/dashboard/servers/${serverId}?terminal=${body.terminal.id}`)
    await page.locator('.xterm-helper-textarea').waitFor({ state: 'attached' })
    await tests.berth.call('POST', `/servers/${serverId}/terminals/${body.terminal.id}/input`, {
      keys: ['enter'],
    })
    await page.locator('.xterm-accessibility-tree').getByText('end-42').waitFor()
    // Of 39 MB.
    expect(bytes).toBeLessThan(20_000_000)
    expect(problems).toEqual([])
    await tests.berth.call('DELETE', `/servers/${serverId}/terminals/${body.terminal.id}`)
  }, 60_000)
})
