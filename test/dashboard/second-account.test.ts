import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, live } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('another account on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('it sees nothing of the first, hears of nothing, and is offered no control of the instance', async () => {
    const { berth } = tests
    const { info } = berth
    await berth.server({ task: 'of the first account' })
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Second' })
    await using watched = await tests.newPage()
    const { page, problems } = watched
    const messages: string[] = []
    page.on('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => messages.push(String(payload))),
    )
    await page.goto(`${info.base_url}/signin`)
    await page.getByLabel('API key').fill(account.api_key)
    await page.keyboard.press('Enter')
    await live(page)
    await page.goto(`${info.base_url}/dashboard/servers`)
    await page.getByText('No servers yet').waitFor()
    expect(await page.getByRole('link', { name: 'Requests' }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Test controls' }).count()).toBe(0)

    expect(await page.getByText("need the instance's rights", { exact: false }).count()).toBe(0)

    await page.goto(`${info.base_url}/dashboard/controls`)
    await page.getByText('This address names nothing').waitFor()
    const status = await page.evaluate(`(async () => {
      const { csrf } = JSON.parse(document.getElementById('dashboard').dataset.context)
      return (await fetch('/_berth/requests', { headers: { 'x-berth-csrf': csrf } })).status
    })()`)
    expect(status).toBe(403)

    await live(page)
    const mine = await fetch(`${info.base_url}/servers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ task: 'of the second' }),
    })
    expect(mine.status).toBe(201)
    const first = await berth.server({ task: 'heard by the first alone' })
    await berth.call('PATCH', `/servers/${first}`, { task: 'renamed' })
    await page.goto(`${info.base_url}/dashboard/servers`)
    await page.getByRole('link', { name: 'of the second' }).waitFor()
    expect(messages.join('\n')).toContain('of the second')
    await page.getByRole('link', { name: 'of the second' }).click()
    const parts = page.getByRole('navigation', { name: 'Parts of the server' })
    await parts.getByRole('link', { name: 'Secrets' }).waitFor()
    for (const name of ['Faults', 'Requests']) expect(await parts.getByRole('link', { name }).count()).toBe(0)
    expect(messages.join('\n')).not.toMatch(/heard by the first|of the first account|renamed/)
    expect(problems.filter((problem) => !problem.includes('403'))).toEqual([])
  })

  test('the first account signed in by its key sees what needs the rights of the instance', async () => {
    const { info } = tests.berth
    await using watched = await tests.newPage()
    const { page } = watched
    await page.goto(`${info.base_url}/signin`)
    await page.getByText('For requests and test controls use', { exact: false }).waitFor()
    await page.getByLabel('API key').fill(info.api_key)
    await page.keyboard.press('Enter')
    await page.getByText("Requests and test controls need the instance's rights", { exact: false }).waitFor()
  })
})
