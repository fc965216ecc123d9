import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, live, NARROW } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('banners of the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('a screen comes with the banners, which do not push it down later', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    const { promise: isAllowed, resolve: allow } = Promise.withResolvers<void>()
    await page.route('**/_berth/health', async (route) => {
      await isAllowed
      await route.continue()
    })
    await page.reload()
    await live(page)
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(0)
    allow()
    await page.getByRole('heading', { level: 1, name: 'Servers' }).waitFor()
  })

  test('a clock that is frozen while the page loads is named', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    const { promise: isFrozen, resolve: frozen } = Promise.withResolvers<void>()
    page.on('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => {
        if (String(payload).includes('"type":"clock"')) frozen()
      }),
    )
    const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>()
    await page.route('**/_berth/health', async (route) => {
      const response = await route.fetch()
      asked()
      await isFrozen
      await route.fulfill({ response })
    })
    await page.reload()
    await Promise.all([isAsked, live(page)])
    await tests.berth.control('POST', '/clock', { freeze: true })
    await page.locator('.banners').getByText('The clock stands', { exact: false }).waitFor()
    await tests.berth.control('POST', '/clock', { freeze: false })
  })

  test('a frozen or moved clock is named at once, and the banner ends it', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page, problems } = watched
    const banners = page.locator('.banners')
    await tests.berth.control('POST', '/clock', { freeze: true })
    await banners.getByText('The clock stands', { exact: false }).waitFor()
    await banners.getByRole('button', { name: 'Let it run' }).click()
    await banners.getByText('The clock stands', { exact: false }).waitFor({ state: 'detached' })
    await tests.berth.control('POST', '/clock', { advance: '26h' })
    await banners.getByText('moved by +1 d', { exact: false }).waitFor()
    // Also by a page that was not there then.
    await page.reload()
    await banners.getByRole('button', { name: 'Reset the clock' }).click()
    await banners.getByText('moved by', { exact: false }).waitFor({ state: 'detached' })
    const { body } = await tests.berth.control('GET', '/clock')
    expect(body.frozen).toBe(false)
    expect(Math.abs(Number(body.offset_ms))).toBeLessThan(1_000)
    expect(problems).toEqual([])
  })

  test('a budget at its cap is named, and raised so far that servers are created again', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    const { accounts } = (await tests.berth.control('GET', '/accounts')).body as {
      accounts: { id: string }[]
    }
    await tests.berth.control('PATCH', `/accounts/${accounts[0]?.id}`, { budget_cap: 5, credits_used: 6 })
    await page.getByText('The budget of 5 credits a month is used up', { exact: false }).waitFor()
    expect((await tests.berth.call('POST', '/servers', {})).status).toBe(403)
    await page.getByRole('button', { name: 'Raise it to 10' }).click()
    await page.getByText('is used up', { exact: false }).waitFor({ state: 'detached' })
    expect((await tests.berth.call('POST', '/servers', {})).status).toBe(201)
  })

  test('a fault is named until it has applied as often as it may', async () => {
    const { berth } = tests
    await berth.control('POST', '/faults', {
      match: { path: '/templates' },
      effect: { error: { status: 503 } },
      times: 1,
    })
    await using watched = await tests.open('/dashboard/servers')
    const banner = watched.page.getByText('A fault is set: requests', { exact: false })
    await banner.waitFor()
    expect((await berth.call('GET', '/templates')).status).toBe(503)
    await banner.waitFor({ state: 'detached' })
    await berth.control('DELETE', '/faults')
  })

  test('many take one line until they are asked for, and hinder nobody, in every look', async () => {
    const { accounts } = (await tests.berth.control('GET', '/accounts')).body as {
      accounts: { id: string }[]
    }
    await tests.berth.control('PATCH', `/accounts/${accounts[0]?.id}`, { budget_cap: 5, credits_used: 6 })
    await tests.berth.control('POST', '/faults', { match: { path: '/none' }, effect: { delay_ms: 1 } })
    await tests.berth.control('POST', '/clock', { freeze: true })
    await using watched = await tests.open('/dashboard/servers', NARROW)
    const { page } = watched
    const banners = page.locator('.banners')
    await banners.getByText('Budget used up · ', { exact: false }).waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
    expect(await banners.locator('.banner').count()).toBe(1)
    await banners.getByRole('button', { name: 'Show' }).click()
    await banners.getByRole('button', { name: 'Remove all' }).click()
    await banners.getByRole('button', { name: 'Remove all' }).waitFor({ state: 'detached' })
    expect(await faultsInAnyLook(page)).toEqual([])
    await tests.berth.control('POST', '/clock', { reset: true })
    await tests.berth.control('PATCH', `/accounts/${accounts[0]?.id}`, { budget_cap: 50, credits_used: 0 })
    await banners.locator('.banner').first().waitFor({ state: 'detached' })
  })
})

describe.skipIf(browserPath === null)('without isolation (needs Chromium)', () => {
  const tests = dashboardTests({ isolation: 'none' })

  test('the dashboard says so, until a person hides it', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    await page.getByText('Servers are not isolated', { exact: false }).waitFor()
    await page.getByRole('button', { name: 'Hide' }).click()
    await page.getByText('Servers are not isolated', { exact: false }).waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('heading', { name: 'Servers', exact: true }).waitFor()
    expect(await page.getByText('Servers are not isolated', { exact: false }).count()).toBe(0)
  })
})
