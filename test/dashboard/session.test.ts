import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, live } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the session of the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('leads to the sign-in and back as soon as it is over: by a call, or when the page connects again', async () => {
    for (const happens of ['a call', 'a connection']) {
      await using watched = await tests.open('/dashboard/servers')
      const { page } = watched
      await live(page)
      await page.context().clearCookies()
      // Where a call of the page's own comes first, the button is gone, and that call leads there.
      if (happens === 'a call')
        await page
          .getByRole('button', { name: 'Create a server' })
          .first()
          .click({ timeout: 5_000 })
          .catch(() => {})
      else await tests.berth.control('POST', '/reset')
      // Several calls at once may each load the page anew, which takes the place of the load before.
      const isAsked = () => page.url().endsWith('/signin?return_to=%2Fdashboard%2Fservers')
      await until(isAsked, 'the page leads to the sign-in')
    }
  })

  test('opens the first screen at /dashboard too', async () => {
    await using watched = await tests.open('/dashboard')
    const { page, problems } = watched
    await page.getByRole('heading', { level: 1, name: 'Timeline' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/')
    expect(problems).toEqual([])
  })

  test('is not over because a fault answers 401', async () => {
    await tests.berth.control('POST', '/faults', {
      match: { operation: 'servers.list', client: 'dashboard' },
      effect: { error: { status: 401 } },
    })
    await using watched = await tests.open('/dashboard/servers')
    const { page, requests } = watched
    await page.getByText('which a test has set').first().waitFor()
    await live(page)
    expect(requests.filter((url) => url.endsWith('/dashboard/servers')).length).toBeLessThan(4)
    expect(new URL(page.url()).pathname).toBe('/dashboard/servers')
    await tests.berth.control('DELETE', '/faults')
  })

  test('is one of the timers that wait, though the page listens by two connections', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const other = await watched.page.context().newPage()
    await other.goto(watched.page.url())
    await live(other)
    const { next } = (await tests.berth.control('GET', '/clock')).body as {
      next: { name: string; id: string }[]
    }
    const ends = next.filter(({ name }) => name === 'session.end').map(({ id }) => id)
    expect(ends.length).toBeGreaterThan(0)
    expect(ends).toEqual([...new Set(ends)])
  })

  test('is one with the other pages, which lead back', async () => {
    await using watched = await tests.open('/dashboard/servers')
    const { page } = watched
    for (const path of ['/docs', '/docs/guide', '/access']) {
      await page.goto(`${tests.berth.info.base_url}${path}`)
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Dashboard' }).click()
      await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    }
  })
})
