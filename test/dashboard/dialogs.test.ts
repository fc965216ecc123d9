import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('dialogs of the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('what a form got wrong is said at its field, which has the focus', async () => {
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Send an event' }).click()
    const dialog = page.getByRole('dialog', { name: 'Send an event' })
    await dialog.getByLabel('Event').selectOption('quota.threshold')
    const data = dialog.getByLabel('credits_used')
    await data.fill('many')
    await dialog.getByRole('button', { name: 'Send', exact: true }).click()
    await dialog.getByText('This is not a number.').waitFor()
    expect(await data.getAttribute('aria-invalid')).toBe('true')
    expect(await data.evaluate((field) => field === field.ownerDocument.activeElement)).toBe(true)
    expect(await hindrances(page)).toEqual([])
    await data.fill('800')
    await dialog.getByRole('button', { name: 'Send', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('a refusal by berth is said in the dialog, and what was typed stays', async () => {
    await using watched = await tests.open('/dashboard/webhooks')
    const { page } = watched
    await page.getByRole('button', { name: 'Subscribe' }).click()
    const dialog = page.getByRole('dialog', { name: 'Subscribe to events' })
    await dialog.locator('input:focus').waitFor()
    await dialog.getByLabel('Address').fill('not an address')
    await dialog.getByRole('button', { name: 'Subscribe' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'refused' }).waitFor()
    expect(await dialog.getByLabel('Address').inputValue()).toBe('not an address')
    await page.mouse.click(5, 5)
    expect(await dialog.isVisible()).toBe(true)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    const button = page.getByRole('button', { name: 'Subscribe' })
    expect(await button.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
  })

  test('a key that follows Escape at once is the page’s, and the focus is where it was, however a dialog is closed', async () => {
    await using watched = await tests.open('/dashboard/tasks')
    const { page } = watched
    const button = page.getByRole('button', { name: 'Run a task' }).first()
    const dialog = page.getByRole('dialog', { name: 'Run a task' })
    const keys = page.getByRole('dialog', { name: 'Keys' })
    await button.waitFor()
    // First without a focus to go back to: the field of the closed dialog has it for some milliseconds more.
    for (const isFocused of [false, true]) {
      if (isFocused) await button.focus()
      await page.keyboard.press('n')
      for (let round = 0; round < 5; round += 1) {
        await dialog.locator('textarea:focus').waitFor()
        await page.keyboard.press('Escape')
        await page.keyboard.press('?')
        await keys.waitFor()
        await page.keyboard.press('Escape')
        await page.keyboard.press('n')
      }
      await dialog.locator('textarea:focus').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    expect(await button.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
  })

  test('the question before a server is deleted fits its dialog, though a row of the list asks it', async () => {
    await tests.berth.server({ task: 'asked about' })
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    await page.getByRole('link', { name: 'asked about' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('.')
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete asked about?' })
    await dialog.waitFor()
    const [over] = await dialog.evaluateAll((all) =>
      all.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
    )
    expect(over).toBe(0)
    expect(await dialog.locator('input:focus').count()).toBe(1)
  })
})
