import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('a terminal on the dashboard that is flooded (needs Chromium)', () => {
  const tests = dashboardTests()

  test('the page reports the drawn bytes exactly, and shows the end', async () => {
    const serverId = await tests.berth.server({ tier: 'medium' })
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/terminals`, {
      command: 'read -r go; seq 1 1000000; echo end-$((6*7)); sleep 300',
    })
    await using watched = await tests.open('/dashboard/servers')
    const { page, problems } = watched
    page.setDefaultTimeout(120_000)
    let [bytes, drawn] = [0, 0]
    page.on('websocket', (socket) => {
      if (!socket.url().includes('/attach')) return
      socket.on('framereceived', ({ payload }) => {
        bytes += payload.length
      })
      socket.on('framesent', ({ payload }) => {
        const [, told = '0'] = /"drawn":(\d+)/.exec(String(payload)) ?? []
        drawn += Number(told)
      })
    })
    await page.goto(`${tests.berth.info.base_url}/dashboard/servers/${serverId}?terminal=${body.terminal.id}`)
    await page.locator('.xterm-helper-textarea').waitFor({ state: 'attached' })
    await tests.berth.call('POST', `/servers/${serverId}/terminals/${body.terminal.id}/input`, {
      keys: ['enter'],
    })
    await page.locator('.xterm-accessibility-tree').getByText('end-42').waitFor()
    await until(() => drawn === bytes, 'all that came to be drawn')
    expect(bytes).toBeGreaterThan(0)
    expect(problems).toEqual([])
    await tests.berth.call('DELETE', `/servers/${serverId}/terminals/${body.terminal.id}`)
  }, 180_000)

  test.each([
    ['a sequence with two billion steps', '\x1b[2147483647S'],
    ['many sequences with a thousand steps', '\x1b[1000S'.repeat(9_000)],
    ['a character with marks without end', `x${'\u0301'.repeat(200_000)}`],
  ])('a program does not hold the page up by a few bytes: %s', async (_, printed) => {
    const { berth } = tests
    const serverId = await berth.server()
    await berth.call('PUT', `/servers/${serverId}/files`, { path: 'printed', content: printed })
    const command = 'read -r go; cat printed; echo; echo end-$((6*7)); sleep 300'
    const { body } = await berth.call('POST', `/servers/${serverId}/terminals`, { command })
    const { id } = body.terminal
    await using watched = await tests.open(`/dashboard/servers/${serverId}?terminal=${id}`)
    const { page, problems } = watched
    await page.locator('.xterm-helper-textarea').waitFor({ state: 'attached' })
    await berth.call('POST', `/servers/${serverId}/terminals/${id}/input`, { keys: ['enter'] })
    await page.locator('.xterm-accessibility-tree').getByText('end-42').waitFor()
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByText('printed', { exact: true }).waitFor()
    expect(problems).toEqual([])
  })
})
