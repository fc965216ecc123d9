import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, live, NARROW } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('servers on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('an empty instance offers a server: one click leads to a prompt, which is still there after a reload', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Create a server' }).click()
    await page.getByRole('heading', { name: 'first', exact: true }).waitFor()
    const screen = page.locator('.xterm-accessibility-tree')
    await screen.getByText('$').first().waitFor()
    await page.keyboard.type('echo $((6*7)) > answer; cat answer\n')
    await screen.getByText('42', { exact: true }).waitFor()
    await page.reload()
    await live(page)
    await screen.getByText('42', { exact: true }).waitFor()
    expect(problems).toEqual([])
  })

  test('a change by another client is seen', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    const created = await tests.berth.call('POST', '/servers', { task: 'made elsewhere' })
    await page.getByRole('link', { name: 'made elsewhere' }).waitFor()
    await tests.berth.call('PATCH', `/servers/${String(created.body.id)}`, { task: 'renamed' })
    await page.getByRole('link', { name: 'renamed' }).waitFor()
    await tests.berth.call('DELETE', `/servers/${String(created.body.id)}`)
    await page.getByRole('link', { name: 'renamed' }).waitFor({ state: 'detached' })
  })

  test('a server is renamed, and deleted only after its name was typed', async () => {
    const server = await tests.berth.server({ task: 'old name' })
    await using watched = await tests.open(`/dashboard/servers/${server}`)
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Actions on old name' }).click()
    await page.getByRole('menuitem', { name: 'Rename' }).click()
    await page.getByLabel('Label').fill('new name')
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('heading', { level: 1, name: 'new name' }).waitFor()
    await page.getByRole('button', { name: 'Actions on new name' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const remove = page.getByRole('button', { name: 'Delete the server' })
    await page.getByLabel('to confirm').fill('old name')
    expect(await remove.isDisabled()).toBe(true)
    await page.getByLabel('to confirm').fill('new name')
    await remove.click()
    await page.getByRole('heading', { level: 1, name: 'Servers' }).waitFor()
    expect((await tests.berth.call('GET', `/servers/${server}`)).status).toBe(404)
    expect(problems).toEqual([])
  })

  test('a server is stopped after a question, which says what ends, and started again by the notice', async () => {
    const server = await tests.berth.server({ task: 'busy' })
    await tests.berth.exec(server, 'sleep 1270 >/dev/null 2>&1 &')
    const status = async () => (await tests.berth.call('GET', `/servers/${server}`)).body.server.status
    await using watched = await tests.open(`/dashboard/servers/${server}`)
    const { page, problems } = watched
    const ask = async () => {
      await page.getByRole('button', { name: 'Actions on busy' }).click()
      await page.getByRole('menuitem', { name: 'Stop' }).click()
    }
    await ask()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('All that runs on it ends: 1 process now').waitFor()
    expect(await hindrances(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await status()).toBe('running')
    await ask()
    await dialog.getByRole('button', { name: 'Stop the server' }).click()
    await page.getByText('busy sleeps.').waitFor()
    expect(await status()).toBe('sleeping')
    await page.getByRole('button', { name: 'Start it' }).click()
    await page.locator('.page-head .state').getByText('running').waitFor()
    expect(problems).toEqual([])
  })

  test('the list and the page of a server say when it was used last', async () => {
    const server = await tests.berth.server({ task: 'used' })
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    const row = page.getByRole('listitem').filter({ hasText: 'used' })
    await row.getByText('never').waitFor()
    await tests.berth.exec(server, 'true')
    await row.getByText('never').waitFor({ state: 'detached' })
    const shown = await row.locator('time').getAttribute('datetime')
    const { usage } = (await tests.berth.call('GET', `/servers/${server}/usage`)).body
    expect(shown).toBe(usage.last_used_at)
    await row.getByRole('link', { name: 'used' }).click()
    await page.getByText('Last used').locator('..').locator(`time[datetime="${shown}"]`).waitFor()
  })

  test('a server without a label shows its id once', async () => {
    const server = await tests.berth.server()
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    const row = page.getByRole('listitem').filter({ hasText: server })
    await row.waitFor()
    const timesIn = async (text: Promise<string | null>) =>
      ((await text) ?? '').split(server.slice(0, 8)).length - 1
    expect(await timesIn(row.textContent())).toBe(1)
    await row.getByRole('link', { name: server }).click()
    const head = page.locator('.page-head')
    await head.getByRole('button', { name: `Copy the id ${server}` }).waitFor()
    expect(await timesIn(head.textContent())).toBe(1)
    await page.getByRole('link', { name: 'Timeline' }).click()
    const created = page
      .locator('.entry')
      .filter({ has: page.locator(`a[href$="${server}"]`), hasText: /^.*server / })
    await created.first().waitFor()
    expect(await timesIn(created.first().textContent())).toBe(1)
  })

  test('a list does not wait for the connection that brings nothing to it', async () => {
    const serverId = await tests.berth.server({ task: 'early' })
    await using watched = await tests.open('/dashboard/usage')
    const { page } = watched
    watched.spend()
    // A connection that never says that it is ready.
    await page.routeWebSocket(/_berth\/changes/, () => {})
    await page.goto(new URL('/dashboard/servers', page.url()).href)
    await page.locator(`a[href="/dashboard/servers/${serverId}"]`).first().waitFor()
    expect(await page.locator('.connection').first().textContent()).toBe('Connecting')
  })

  test('the screens hinder nobody and fit, in every look', async () => {
    await tests.berth.call('POST', '/servers', { task: 'with a <b>long</b> name, שלום and 🚢 '.repeat(3) })
    await using watched = await tests.open('/dashboard/servers', NARROW)
    const { page } = watched
    await page.getByRole('link', { name: '🚢' }).first().waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
    await page.getByRole('link', { name: '🚢' }).first().click()
    await page.getByRole('button', { name: 'Open a terminal' }).click()
    await page.locator('.xterm-accessibility-tree').getByText('$').first().waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
  })
})
