import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** Returns the text of what has the focus, or its label. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(
    '(document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent).trim()',
  ) as Promise<string>

describe.skipIf(browserPath === null)('the keys of the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('go through a list, open what is selected, and its actions', async () => {
    for (const task of ['one', 'two', 'three']) await tests.berth.server({ task })
    await using watched = await tests.open('/dashboard/servers')
    const { page, problems } = watched
    await page.getByRole('link', { name: 'three' }).waitFor()
    await page.keyboard.press('j')
    expect(await focused(page)).toBe('three')
    await page.keyboard.press('j')
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toBe('one')
    await page.keyboard.press('j')
    expect(await focused(page)).toBe('one')
    await page.keyboard.press('k')
    expect(await focused(page)).toBe('two')
    const outlined = "getComputedStyle(document.activeElement.closest('.row')).outlineStyle"
    expect(await page.evaluate(outlined)).toBe('solid')
    await page.keyboard.press('.')
    await page.getByRole('menu', { name: 'Actions on two' }).waitFor()
    // No action is chosen yet, so that a line that is typed here by mistake starts none.
    await page.locator('.menu:focus').waitFor()
    for (const key of ['Space', 'Enter', 'j']) await page.keyboard.press(key)
    await page.locator('.menu:focus').waitFor()
    await page.keyboard.press('ArrowUp')
    expect(await focused(page)).toBe('Delete')
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toBe('Restart')
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('two')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'two' }).waitFor()
    // The link that led here is gone: the focus is on the title of what it led to.
    await page.locator('h1:focus', { hasText: 'two' }).waitFor()
    await page.keyboard.press('.')
    await page.getByRole('menu', { name: 'Actions on two' }).waitFor()
    expect(problems).toEqual([])
  })

  test('go through the other lists alike', async () => {
    const serverId = await tests.berth.server({ task: 'with more' })
    for (const goal of ['first goal', 'second goal'])
      await tests.berth.call('POST', `/servers/${serverId}/tasks`, { goal })
    await tests.berth.call('POST', '/keys', { label: 'a key' })
    await using watched = await tests.open('/dashboard/tasks')
    const { page } = watched
    await page.getByRole('link', { name: 'first goal' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    expect(await focused(page)).toBe('first goal')
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await page.getByText('a key', { exact: true }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('.')
    expect(await focused(page)).toBe('Delete')
    await page.keyboard.press('g')
    await page.keyboard.press('h')
    await page.locator('.entry').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname !== '/')
  })

  test('create one of what the screen lists, and go to the pages beside the dashboard', async () => {
    await using watched = await tests.open('/dashboard/tasks')
    const { page } = watched
    await page.getByRole('button', { name: 'Run a task' }).first().waitFor()
    await page.keyboard.press('n')
    await page.getByRole('dialog', { name: 'Run a task' }).waitFor()
    await page.locator('textarea[name="goal"]:focus').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Run a task' }).waitFor({ state: 'detached' })
    await page.keyboard.press('?')
    const keys = page.getByRole('dialog', { name: 'Keys' })
    await keys.getByText('Create one of what the screen lists').waitFor()
    await keys.getByText('API reference').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('d')
    await page.waitForURL((url) => url.pathname === '/docs')
  })

  test('search, and lead from the search into the list; text that is typed there is not a shortcut', async () => {
    await tests.berth.server({ task: 'jig' })
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    await page.getByRole('link', { name: 'jig' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('jig')
    await page.waitForURL('**/dashboard/servers?q=jig')
    await page.keyboard.press('Enter')
    expect(await focused(page)).toBe('jig')
  })

  test('are listed: those that work on the screen, and no others', async () => {
    await tests.berth.server({ task: 'listed' })
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    await page.getByRole('link', { name: 'listed' }).waitFor()
    const listed = async (): Promise<string> => {
      await page.keyboard.press('?')
      const dialog = page.getByRole('dialog', { name: 'Keys' })
      await dialog.waitFor()
      const text = (await dialog.textContent()) ?? ''
      expect(await hindrances(page)).toEqual([])
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      return text
    }
    const ofServers = await listed()
    for (const label of ['Next', 'Previous', 'Search', 'Actions on', 'Requests'])
      expect(ofServers).toContain(label)
    expect(ofServers).not.toContain('Pause the live list')
    await page.keyboard.press('g')
    await page.keyboard.press('u')
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
    expect(await listed()).not.toContain('Search')
  })

  test('open a menu that is in view, also that of the last row', async () => {
    for (let count = 0; count < 12; count += 1) await tests.berth.server({ task: `row ${count}` })
    await using watched = await tests.open('/dashboard/servers', { viewport: { width: 1280, height: 500 } })
    const { page } = watched
    await page.getByRole('link', { name: 'row 11' }).waitFor()
    for (let count = 0; count < 8; count += 1) await page.keyboard.press('j')
    await page.keyboard.press('.')
    const menu = page.locator('.menu:popover-open')
    await menu.waitFor()
    const { y = -1, height = 0 } = (await menu.boundingBox()) ?? {}
    expect(y).toBeGreaterThanOrEqual(0)
    expect(y + height).toBeLessThanOrEqual(500)
  })
})
