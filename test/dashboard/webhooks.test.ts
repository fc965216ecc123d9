import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, LOOKS } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('webhooks on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests({ 'allow-local-webhooks': true })

  test('an inbox is subscribed, refuses at first, and is delivered to when the clock is moved to the next try', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Subscribe' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill(`${berth.info.base_url}/_berth/inbox/orders?respond=503,200`)
    await dialog.getByRole('button', { name: 'Subscribe' }).click()
    const shown = page.getByRole('dialog', { name: "The webhook's secret" })
    expect(await shown.locator('.line code').textContent()).toStartWith('whsec_')
    await shown.getByRole('button', { name: 'Done' }).click()

    await page.getByRole('button', { name: /Send an event/ }).click()
    await page.getByRole('combobox').selectOption('task.failed')
    await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click()
    const delivery = page.locator('.deliveries > li', { hasText: 'task.failed' })
    await delivery.locator('summary').first().click()
    await delivery.getByText('503', { exact: true }).waitFor()
    await delivery.getByText('Next try').waitFor()

    await page.getByRole('link', { name: 'Test controls' }).click()
    await page.getByRole('button', { name: 'Go to the next: delivery.retry' }).click()
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await delivery.getByText('delivered', { exact: true }).waitFor()

    await page.getByRole('link', { name: 'Inboxes' }).click()
    await page.getByText('signed', { exact: true }).first().waitFor()
    expect(problems).toEqual([])
  })

  for (const [look, options] of LOOKS)
    test(`${look}, the screens hinder nobody and fit`, async () => {
      const url = `${tests.berth.info.base_url}/_berth/inbox/looked-at`
      await tests.berth.call('POST', '/webhooks', { url })
      await tests.berth.control('POST', '/events', { event: 'task.created' })
      for (const path of ['/dashboard/webhooks', '/dashboard/inboxes']) {
        await using watched = await tests.open(path, options)
        const { page } = watched
        await page.locator('.deliveries').first().waitFor()
        expect(await hindrances(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          options.viewport.width,
        )
      }
    })
})
