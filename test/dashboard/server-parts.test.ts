import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW } from '../support/dashboard.ts'

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
    // The list says so, too, before the page of the build is shown.
    await page.waitForURL('**/dashboard/builds/*')
    await page.locator('.state').getByText('completed').waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'write: index.html' }).waitFor()
    expect(problems).toEqual([])
  })

  test('its workspace is published, what fails says why, a sleep is seen, and it is unpublished', async () => {
    const { berth } = tests
    const server = await berth.server()
    const write = (path: string, content: string) =>
      berth.call('PUT', `/servers/${server}/files`, { path, content })
    await write('berth.json', '{"start": "echo started; exit 9"}')
    await using watched = await tests.open(`/dashboard/servers/${server}/deployment`)
    const { page } = watched
    await page.getByRole('button', { name: 'Publish the workspace' }).click()
    await page.getByRole('alert').getByText('started').waitFor()
    await berth.call('DELETE', `/servers/${server}/files?path=berth.json`)
    await write('index.html', '<h1>Hello</h1>')
    await page.getByRole('button', { name: 'Publish the workspace' }).click()
    const head = page.locator('.deployment-head')
    await head.locator('.state').getByText('live').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    const url = await head.getByRole('link').getAttribute('href')
    expect(await (await fetch(String(url))).text()).toBe('<h1>Hello</h1>')
    await page.getByText('Found: static files, by index.html.').waitFor()
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await head.locator('.state').getByText('sleeping').waitFor()
    await page.getByRole('button', { name: 'Unpublish' }).click()
    await page.getByRole('dialog').getByText('The same from a terminal').click()
    await page.getByRole('dialog').getByText(`berth deployments delete ${server}`).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Unpublish' }).click()
    await page.getByText('Nothing is published', { exact: true }).waitFor()
    expect((await berth.call('GET', `/servers/${server}/deployments`)).body).toEqual({ deployments: [] })
    await berth.call('POST', `/servers/${server}/deployments`)
    await head.locator('.state').getByText('live').waitFor()
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

  test('a new version that does not start is said once above the log, which has its output', async () => {
    const { berth } = tests
    const server = await berth.server()
    const write = (start: string) =>
      berth.call('PUT', `/servers/${server}/files`, {
        path: 'berth.json',
        content: JSON.stringify({ start }),
      })
    await write('exec bun -e "Bun.serve({ port: Number(process.env.PORT), fetch: () => new Response() })"')
    expect((await berth.call('POST', `/servers/${server}/deployments`)).status).toBe(201)
    await write('echo no database; exit 9')
    await using watched = await tests.open(`/dashboard/servers/${server}/deployment`)
    const { page } = watched
    await page.getByRole('button', { name: 'Publish again' }).click()
    await page.getByRole('alert').getByText('The app did not start').waitFor()
    await page.locator('.log-text').getByText('no database', { exact: true }).waitFor()
    expect(await page.getByRole('alert').textContent()).not.toContain('no database')
  })

  test('a fault inside it is said on each of its parts, and ended there', async () => {
    const { berth } = tests
    const server = await berth.server()
    await using watched = await tests.open(`/dashboard/servers/${server}`)
    const { page, problems } = watched
    await berth.control('POST', `/servers/${server}/fault`, { kind: 'slow_exec', delay_ms: 1500 })
    const notice = page.locator('.fault-notice')
    await notice.getByText('Slow commands on purpose').waitFor()
    await page.getByRole('link', { name: 'Files' }).click()
    await notice.getByText('1.5 s each').waitFor()
    expect(await hindrances(page)).toEqual([])
    await notice.getByRole('button', { name: 'End it' }).click()
    await notice.waitFor({ state: 'detached' })
    expect((await berth.control('GET', `/servers/${server}/fault`)).body.faults).toEqual([])
    expect(problems).toEqual([])
  })

  test('its faults are set, count as they apply, and are lifted; those that cannot apply to it are not shown', async () => {
    const { berth } = tests
    const server = await berth.server()
    const { body: elsewhere } = await berth.control('POST', '/faults', {
      match: { path: '/servers/srv_other/exec' },
      effect: { error: { status: 418 } },
    })
    await using watched = await tests.open(`/dashboard/servers/${server}/faults`)
    const { page } = watched
    await page.getByText('No fault that is set may apply to one.').waitFor()
    await page.getByRole('button', { name: 'Make something fail' }).click()
    await page.getByLabel('Milliseconds').fill('soon')
    await page.getByRole('button', { name: 'Make it so' }).click()
    await page.getByText('Expected milliseconds, such as 2000.').waitFor()
    await page.getByLabel('Milliseconds').fill('1')
    await page.getByLabel('For how many commands').fill('2')
    await page.getByRole('button', { name: 'Make it so' }).click()
    await page.getByText('Lasts for 2 more of 2 commands').waitFor()
    await berth.exec(server, 'true')
    await page.getByText('Lasts for 1 more of 2 commands').waitFor()
    await page.getByRole('button', { name: 'Lift slow commands' }).click()
    await page.getByText('Nothing goes wrong').waitFor()

    await page.getByRole('button', { name: 'Set a fault' }).click()
    await page.getByLabel('Which requests about the server').selectOption('exec.run')
    await page.getByLabel('503 unavailable').check()
    await page.getByRole('button', { name: 'Set the fault' }).click()
    await page.getByText('Has not applied yet').waitFor()
    const { status } = await berth.call('POST', `/servers/${server}/exec`, { command: 'true' })
    expect(status).toBe(503)
    await page.getByText('Applied once').waitFor()
    expect(
      await page
        .locator('.server-faults')
        .getByText(/\b418\b/)
        .count(),
    ).toBe(0)
    await page.locator('.server-faults').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No fault that is set may apply to one.').waitFor()
    await berth.control('DELETE', `/faults/${elsewhere.id}`)

    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await page.getByText('nothing of it runs that could fail').waitFor()
    expect(await page.getByRole('button', { name: 'Make something fail' }).isDisabled()).toBe(true)
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

  test('the parts hinder nobody and fit, in every look', async () => {
    const { berth } = tests
    const server = await berth.server({ task: 'a <b>long</b> name '.repeat(6) })
    const goal = `run: echo '<img src=x onerror=alert(1)>' ${'long '.repeat(60)}`
    await berth.call('POST', `/servers/${server}/tasks`, { goal })
    await berth.call('POST', `/servers/${server}/builds`, { goal })
    await berth.call('POST', `/servers/${server}/deployments`)
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { ['LONG_'.repeat(30)]: 'value' } })
    await using watched = await tests.open(`/dashboard/servers/${server}`, NARROW)
    const { page } = watched
    const parts = page.getByRole('navigation', { name: 'Parts of the server' })
    for (const [part, shown] of [
      ['Deployment', page.locator('.deployment-head .state')],
      ['Tasks', page.locator('.goals .row-link')],
      ['Builds', page.locator('.goals .row-link')],
      ['Secrets', page.getByRole('rowheader')],
      ['Faults', page.getByText('Nothing goes wrong')],
      ['Requests', page.locator('.requests .row-link')],
    ] as const) {
      await parts.getByRole('link', { name: part }).click()
      await shown.first().waitFor()
      expect(await page.locator('main img').count()).toBe(0)
      expect(await faultsInAnyLook(page)).toEqual([])
    }
  })
})
