import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, live, NARROW, WIDE } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the drawer of the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('shows the object on the screen as it is now, by the keyboard alone, and gives the focus back', async () => {
    const serverId = await tests.berth.server({ task: 'drawn' })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files`)
    const { page, problems } = watched
    await page.getByRole('heading', { name: 'drawn' }).waitFor()
    await page.getByRole('link', { name: 'Processes' }).focus()
    await page.keyboard.press('~')
    const drawer = page.getByRole('region', { name: 'Drawer' })
    await drawer.locator('.json-string', { hasText: '"drawn"' }).waitFor()
    await drawer.getByText(`berth servers get ${serverId}`).waitFor()
    await tests.berth.call('PATCH', `/servers/${serverId}`, { task: 'drawn anew' })
    await drawer.locator('.json-string', { hasText: '"drawn anew"' }).waitFor()
    expect(await page.locator('.drawer :focus').count()).toBe(1)
    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
    expect(await page.locator(':focus').textContent()).toBe('Processes')
    expect(problems).toEqual([])
  })

  test('is about the row that is selected in a list', async () => {
    await tests.berth.server({ task: 'not this' })
    await tests.berth.server({ task: 'this one' })
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    await page.getByRole('link', { name: 'this one' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('~')
    await page.getByRole('region', { name: 'Drawer' }).getByText('"this one"').waitFor()
  })

  test('offers no object where the screen shows none', async () => {
    await using watched = await tests.open('/dashboard/usage')
    const { page } = watched
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
    await page.keyboard.press('~')
    const drawer = page.getByRole('region', { name: 'Drawer' })
    await drawer.locator('.drawer-tab').first().waitFor()
    expect(await drawer.locator('.drawer-tab').allTextContents()).toEqual(['Requests', 'Shell'])
    await drawer.getByText('All requests').waitFor()
  })

  test('has the terminals of the server on the screen, and takes no key that is typed in them', async () => {
    const serverId = await tests.berth.server({ task: 'shelled' })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files`)
    const { page } = watched
    await page.getByRole('button', { name: /^Drawer/ }).click()
    const drawer = page.getByRole('region', { name: 'Drawer' })
    await drawer.getByRole('button', { name: 'Shell' }).click()
    await drawer.getByRole('button', { name: 'Open a terminal' }).click()
    const screen = drawer.locator('.xterm-accessibility-tree')
    await screen.getByText('$').first().waitFor()
    await page.keyboard.type('echo ~ $((6*7))j > /tmp/said; cat /tmp/said\n')
    await screen.getByText('42j').first().waitFor()
    await page.keyboard.press('Control+F6')
    expect(await page.locator('.terminal-tabs :focus').count()).toBe(1)
    const listed = await tests.berth.call('GET', `/servers/${serverId}/terminals`)
    expect(listed.body.terminals).toHaveLength(1)
    // The height and the part are kept; the terminal is the same on the server's own screen.
    await drawer.getByRole('separator', { name: 'Height of the drawer' }).focus()
    const before = (await drawer.boundingBox())?.height ?? 0
    await page.keyboard.press('ArrowUp')
    await page.waitForFunction(`document.querySelector('.drawer').offsetHeight > ${before}`)
    await page.goto(`${tests.berth.info.base_url}/dashboard/servers/${serverId}`)
    await live(page)
    await page.locator('#main .xterm-accessibility-tree').getByText('42j').first().waitFor()
    await page.keyboard.press('Control+F6')
    await page.keyboard.press('~')
    await screen.getByText('42j').first().waitFor()
    expect(Math.round((await drawer.boundingBox())?.height ?? 0)).toBe(Math.round(before) + 40)
  })

  test('lists the last requests about what is on the screen, as they come', async () => {
    const serverId = await tests.berth.server({ task: 'asked' })
    await tests.berth.server({ task: 'other' })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files`)
    const { page } = watched
    await page.getByRole('heading', { name: 'asked' }).waitFor()
    await page.keyboard.press('~')
    const drawer = page.getByRole('region', { name: 'Drawer' })
    await drawer.getByRole('button', { name: 'Requests' }).click()
    await drawer.getByRole('link', { name: '/servers' }).first().waitFor()
    expect(await drawer.locator('.row').count()).toBe(1)
    await tests.berth.call('POST', `/servers/${serverId}/exec`, { command: 'true' })
    await drawer.getByRole('link', { name: '/exec' }).click()
    await page.waitForURL('**/dashboard/requests?request=*')
  })

  test('it hinders nobody, fits, and leaves the screen in view, in every look', async () => {
    const serverId = await tests.berth.server({ task: 'a <b>long</b> name, שלום and 🚢 '.repeat(3) })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files`, NARROW)
    const { page } = watched
    await page.getByRole('button', { name: 'New file' }).waitFor()
    await page.keyboard.press('~')
    for (const part of ['Requests', 'Shell', 'Object']) {
      await page.getByRole('region', { name: 'Drawer' }).getByRole('button', { name: part }).click()
      expect(await faultsInAnyLook(page)).toEqual([])
    }
    const [main, drawer] = [page.locator('#main'), page.getByRole('region', { name: 'Drawer' })]
    for (const { viewport } of [NARROW, WIDE]) {
      await page.setViewportSize(viewport)
      const [upper, lower] = [await main.boundingBox(), await drawer.boundingBox()]
      expect(upper?.height ?? 0).toBeGreaterThan(100)
      expect((upper?.y ?? 0) + (upper?.height ?? 0)).toBeLessThanOrEqual((lower?.y ?? 0) + 1)
    }
  })
})
