import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, LOOKS } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('test controls on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('a request that went wrong becomes a fault; the state is saved, reset and restored', async () => {
    const { berth } = tests
    await berth.server({ task: 'kept' })
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(404)
    await using watched = await tests.open('/dashboard/requests')
    const { page, problems } = watched
    await page.getByText('/servers/srv_none/exec').first().click()
    await page.getByRole('button', { name: /Make a fault of it/ }).click()
    await page.getByLabel('429 too many requests').check()
    await page.getByRole('button', { name: 'Set the fault' }).click()
    await page.getByText('A fault is set').first().waitFor()
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(429)

    await page.getByRole('link', { name: 'Test controls' }).click()
    await page.getByText('Struck once').waitFor()
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('None is set.').first().waitFor()
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(404)

    await page.getByLabel('Name of the snapshot').fill('mine')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.locator('.card', { hasText: 'mine' }).waitFor()
    await page.getByRole('button', { name: 'Reset …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await page.getByText('The instance was reset.').waitFor()
    expect((await berth.call('GET', '/servers')).body.servers).toEqual([])
    await page.locator('.card', { hasText: 'mine' }).getByRole('button', { name: 'Restore …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByText('The state is that of mine.').waitFor()
    await page.getByRole('link', { name: 'Servers' }).click()
    await page.getByRole('link', { name: 'kept' }).waitFor()
    expect(problems.filter((problem) => !problem.includes('WebSocket'))).toEqual([])
  })

  test('the clock is moved and frozen', async () => {
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    await page.getByRole('button', { name: '+1d' }).click()
    await page.getByText('1 d ahead').waitFor()
    await page.getByRole('button', { name: 'Freeze' }).click()
    await page.getByText('frozen').first().waitFor()
    await page.getByRole('button', { name: 'Reset', exact: true }).click()
    await page.getByText('1 d ahead').waitFor({ state: 'detached' })
  })

  for (const [look, options] of LOOKS)
    test(`${look}, the screen hinders nobody and fits`, async () => {
      await tests.berth.control('POST', '/faults', {
        match: { path: '/servers/**' },
        effect: { delay_ms: 1 },
      })
      await using watched = await tests.open('/dashboard/controls', options)
      const { page } = watched
      await page.getByText('1 ms later').first().waitFor()
      expect(await hindrances(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
        options.viewport.width,
      )
    })
})
