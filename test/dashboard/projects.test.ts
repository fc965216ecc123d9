import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, LOOKS } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('projects on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('an app from a template is brought up, broken in the editor, understood by its log, and mended', async () => {
    await using watched = await tests.open('/dashboard/projects')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Create a project' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('combobox', { name: 'Template' }).selectOption('bun-api')
    await dialog.getByLabel('Name').fill('Counter')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page.locator('.state').getByText('running').waitFor()
    const url = String(await page.getByRole('link', { name: 'Open' }).getAttribute('href'))
    expect((await fetch(url)).status).toBeLessThan(500)

    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('button', { name: 'src', exact: true }).click()
    await page.getByRole('button', { name: 'server.ts' }).click()
    const editor = page.getByRole('textbox', { name: /Content of .*server\.ts/ })
    await editor.click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.type("throw new Error('broken on purpose')\n")
    await page.keyboard.press('Control+s')
    await page.getByText('edited').waitFor({ state: 'detached' })

    const menu = page.getByRole('button', { name: 'Actions on Counter' })
    await page.getByRole('link', { name: 'Projects' }).first().click()
    await page.locator('.row-link').getByText('Counter').click()
    await menu.click()
    await page.getByRole('menuitem', { name: 'Restart the app' }).click()
    await page.locator('.log-text').getByText('broken on purpose').first().waitFor()

    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('button', { name: 'src', exact: true }).click()
    await page.getByRole('button', { name: 'server.ts' }).click()
    await editor.click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.press('Shift+ArrowDown')
    await page.keyboard.press('Delete')
    await page.keyboard.press('Control+s')
    await page.getByText('edited').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Projects' }).first().click()
    await page.locator('.row-link').getByText('Counter').click()
    await menu.click()
    await page.getByRole('menuitem', { name: 'Restart the app' }).click()
    await page.locator('.state').getByText('running').waitFor()
    expect((await fetch(url)).status).toBeLessThan(500)
    expect(problems).toEqual([])
  })

  test('a variable is set, shown by its name alone, and removed', async () => {
    const serverId = await tests.berth.server()
    const { body: project } = await tests.berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Secretive',
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}/variables`)
    const { page } = watched
    await page.getByLabel('Name').fill('API_KEY')
    await page.getByLabel('Value').fill('hunter2hunter2')
    await page.getByRole('button', { name: 'Set' }).click()
    await page.getByRole('rowheader', { name: 'API_KEY' }).waitFor()
    expect(await page.content()).not.toContain('hunter2hunter2')
    await page.getByRole('button', { name: 'Remove API_KEY' }).click()
    await page.getByRole('rowheader', { name: 'API_KEY' }).waitFor({ state: 'detached' })
  })

  for (const [look, options] of LOOKS)
    test(`${look}, the screens hinder nobody and fit`, async () => {
      const serverId = await tests.berth.server()
      const { body: project } = await tests.berth.call('POST', `/servers/${serverId}/projects`, {
        name: 'Überlang '.repeat(8),
        source: { type: 'template', template: 'static-site' },
      })
      for (const path of ['/dashboard/projects', `/dashboard/projects/${project.id}`]) {
        await using watched = await tests.open(path, options)
        const { page } = watched
        await page.getByText('Überlang').first().waitFor()
        expect(await hindrances(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          options.viewport.width,
        )
      }
    })
})
