import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW, showScreen } from '../support/dashboard.ts'
import { accessToken, registerClient } from '../support/oauth.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('access and usage on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('a key for one server is created, shown once, works, and is deleted', async () => {
    const serverId = await tests.berth.server({ task: 'reached' })
    const other = await tests.berth.server({ task: 'not reached' })
    await using watched = await tests.open('/dashboard/access')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('What is it for?').fill('CI')
    await page.getByLabel('Only some servers').check()
    // Without one it would reach everything.
    expect(await page.getByRole('button', { name: 'Create', exact: true }).isDisabled()).toBe(true)
    await page.getByRole('checkbox', { name: 'reached', exact: true }).check()
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const key = String(
      await page.getByRole('dialog', { name: 'The key CI' }).locator('.line code').textContent(),
    )
    const status = async (id: string): Promise<number> => {
      const headers = { authorization: `Bearer ${key}` }
      return (await fetch(`${tests.berth.info.base_url}/servers/${id}`, { headers })).status
    }
    expect([await status(serverId), await status(other)]).toEqual([200, 404])
    await page.getByRole('button', { name: 'Done' }).click()
    const card = page.locator('.card', { hasText: 'CI' })
    await card.getByText('only reached').waitFor()
    expect(await page.content()).not.toContain(key)
    await card.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the key' }).click()
    await card.waitFor({ state: 'detached' })
    expect(await status(serverId)).toBe(401)
    expect(problems).toEqual([])
  })

  test('programs and browsers are listed, the one that looks marked, and their access ends at once', async () => {
    const { berth } = tests
    const token = await accessToken(berth, {
      client: await registerClient(berth.info.base_url, { client_name: '<b>Editor</b>' }),
    })
    const statusOf = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`${berth.info.base_url}/servers`, { headers })).status
    }
    await using other = await tests.open('/dashboard/servers')
    await using watched = await tests.open('/dashboard/access')
    const { page, problems } = watched
    const program = page.locator('.card', { hasText: '<b>Editor</b>' })
    await program.getByText('this machine').waitFor()
    expect(await statusOf()).toBe(200)
    await program.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await program.waitFor({ state: 'detached' })
    expect(await statusOf()).toBe(401)

    const here = page.locator('.card', { hasText: 'this one' })
    expect(await here.count()).toBe(1)
    const left = other.page.waitForURL(/signin/)
    await page.getByRole('button', { name: 'Sign out all others' }).click()
    await left
    await page.getByText('All other browsers are signed out.').waitFor()
    await here.getByRole('button', { name: 'Sign out this browser' }).click()
    await page.waitForURL('**/signin?done=signed-out')
    expect(problems.filter((problem) => !/WebSocket|401/.test(problem))).toEqual([])
  })

  test('what others do about access is shown as it happens', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/access')
    const { page, problems } = watched
    const card = (text: string) => page.locator('.card', { hasText: text })
    await card('this one').waitFor()
    const { body: key } = await berth.call('POST', '/keys', { label: 'by another client' })
    await card('by another client').waitFor()
    await berth.call('DELETE', `/keys/${key.id}`)
    await card('by another client').waitFor({ state: 'detached' })

    const client = await registerClient(berth.info.base_url, { client_name: 'Newcomer' })
    await accessToken(berth, { client })
    await card('Newcomer').waitFor()
    const { programs } = (await berth.call('GET', '/programs')).body
    const { id } = programs.find((program: { name: string }) => program.name === 'Newcomer')
    await berth.call('DELETE', `/programs/${id}`)
    await card('Newcomer').waitFor({ state: 'detached' })

    const browsers = page.getByRole('region', { name: 'Browsers' }).locator('.card')
    const before = await browsers.count()
    const other = await tests.open('/dashboard/access')
    await browsers.nth(before).waitFor()
    const [newest] = (await berth.call('GET', '/browsers')).body.browsers
    await berth.call('DELETE', `/browsers/${newest.id}`)
    await browsers.nth(before).waitFor({ state: 'detached' })
    await other[Symbol.asyncDispose]()
    expect(problems).toEqual([])
  })

  test('processes of a server are listed with their owner, and ended', async () => {
    const serverId = await tests.berth.server()
    await tests.berth.call('POST', `/servers/${serverId}/terminals`, { command: 'sleep 4321' })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/processes`)
    const { page } = watched
    const row = page.getByRole('row', { name: /sleep 4321/ }).last()
    await row.getByText('terminal').waitFor()
    await row.getByRole('button', { name: /End process/ }).click()
    await page.getByRole('button', { name: 'End it' }).click()
    await page.getByText('sleep 4321').first().waitFor({ state: 'detached' })
  })

  test('the screens hinder nobody and fit, in every look', async () => {
    const serverId = await tests.berth.server({ task: 'busy' })
    await tests.berth.call('POST', `/servers/${serverId}/terminals`, { command: 'sleep 1000' })
    const screens = [
      ['/dashboard/access', 'Reaches'],
      ['/dashboard/usage', 'Credits by server'],
      [`/dashboard/servers/${serverId}/processes`, 'sleep 1000'],
    ] as const
    await using watched = await tests.open(screens[0][0], NARROW)
    const { page } = watched
    for (const [path, text] of screens) {
      await showScreen(page, path)
      await page.getByText(text).first().waitFor()
      expect(await faultsInAnyLook(page)).toEqual([])
    }
  })
})
