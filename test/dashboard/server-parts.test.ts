import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, LOOKS } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the parts of a server on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('its tasks and builds are listed, without those of others, and run from there', async () => {
    const { berth } = tests
    const [server, other] = [await berth.server({ task: 'mine' }), await berth.server({ task: 'other' })]
    await berth.call('POST', `/servers/${other}/tasks`, { goal: 'run: echo elsewhere' })
    await using watched = await tests.open(`/dashboard/servers/${server}/tasks`)
    const { page, problems } = watched
    await page.getByText('No tasks on this server').waitFor()
    await berth.call('POST', `/servers/${server}/tasks`, { goal: 'run: echo here' })
    await page.getByRole('link', { name: 'run: echo here' }).waitFor()
    expect(await page.getByRole('link', { name: 'elsewhere' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Run a task' }).click()
    expect(await page.getByRole('combobox', { name: 'Server' }).inputValue()).toBe(server)
    await page.getByLabel('Goal').fill('run: echo again')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'run: echo again' }).waitFor()

    await page.goto(`${berth.info.base_url}/dashboard/servers/${server}/builds`)
    await page.getByRole('button', { name: 'Run a build' }).click()
    await page.getByLabel('Goal').fill('write: index.html <<< <h1>Hello</h1>')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.locator('.state').getByText('completed').waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'write: index.html' }).waitFor()
    expect(problems).toEqual([])
  })

  test('a secret is set, reaches commands, is shown by its name alone, and is removed after a question', async () => {
    const { berth } = tests
    const server = await berth.server()
    await using watched = await tests.open(`/dashboard/servers/${server}/secrets`)
    const { page } = watched
    await page.getByLabel('Name').fill('TOKEN')
    await page.getByLabel('Value').fill('hunter2hunter2')
    await page.getByRole('button', { name: 'Set' }).click()
    await page.getByRole('rowheader', { name: 'TOKEN' }).waitFor()
    expect((await berth.exec(server, 'printf %s "$TOKEN" | wc -c')).stdout.trim()).toBe('14')
    expect(await page.content()).not.toContain('hunter2hunter2')
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { MODE: 'test' } })
    await page.getByRole('rowheader', { name: 'MODE' }).waitFor()
    await page.getByRole('button', { name: 'Remove TOKEN' }).click()
    await page.getByRole('button', { name: 'Remove it' }).click()
    await page.getByRole('rowheader', { name: 'TOKEN' }).waitFor({ state: 'detached' })
    expect((await berth.exec(server, 'echo "[$TOKEN]$MODE"')).stdout.trim()).toBe('[]test')
  })

  test('its requests come as they are made, without those of others, and open beside the list', async () => {
    const { berth } = tests
    const [server, other] = [await berth.server(), await berth.server()]
    await using watched = await tests.open(`/dashboard/servers/${server}/requests`)
    const { page } = watched
    const rows = page.locator('.requests .row')
    await rows.getByText('servers.create').waitFor()
    await berth.exec(other, 'echo other')
    await berth.call('POST', `/servers/${server}/exec`, { comand: 'echo' })
    await rows.getByText('exec.run').waitFor()
    expect(await rows.count()).toBe(2)
    await rows.getByRole('link').first().click()
    await page.getByRole('complementary', { name: 'The request' }).getByText('comand').first().waitFor()
    expect(page.url()).toContain(`/dashboard/servers/${server}/requests?request=`)
    await page.getByRole('checkbox', { name: 'Errors only' }).check()
    await rows.getByText('servers.create').waitFor({ state: 'detached' })
    expect(await rows.count()).toBe(1)
  })

  for (const [look, options] of LOOKS)
    test(`${look}, the parts hinder nobody and fit`, async () => {
      const { berth } = tests
      const server = await berth.server({ task: 'a <b>long</b> name '.repeat(6) })
      const goal = `run: echo '<img src=x onerror=alert(1)>' ${'long '.repeat(60)}`
      await berth.call('POST', `/servers/${server}/tasks`, { goal })
      await berth.call('POST', `/servers/${server}/builds`, { goal })
      await berth.call('PUT', '/secrets', { server_id: server, secrets: { ['LONG_'.repeat(30)]: 'value' } })
      await using watched = await tests.open(`/dashboard/servers/${server}`, options)
      const { page } = watched
      const parts = page.getByRole('navigation', { name: 'Parts of the server' })
      for (const [part, shown] of [
        ['Tasks', page.locator('.goals .row-link')],
        ['Builds', page.locator('.goals .row-link')],
        ['Secrets', page.getByRole('rowheader')],
        ['Requests', page.locator('.requests .row-link')],
      ] as const) {
        await parts.getByRole('link', { name: part }).click()
        await shown.first().waitFor()
        expect(await page.locator('main img').count()).toBe(0)
        expect(await hindrances(page)).toEqual([])
        for (const place of ['document.documentElement', "document.querySelector('#main')"])
          expect(await page.evaluate(`${place}.scrollWidth`)).toBeLessThanOrEqual(options.viewport.width)
      }
    })
})
