import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW, showScreen } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the MCP tools on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('are found, called by a form, and show what they respond', async () => {
    const { berth } = tests
    const server = await berth.server({ task: 'for tools' })
    await using watched = await tests.open('/dashboard/mcp')
    const { page, problems } = watched
    await page.getByRole('link', { name: 'exec_run' }).waitFor()
    const count = await page.locator('.tools .row').count()
    expect(count).toBeGreaterThan(50)
    await page.getByRole('searchbox').fill('exec_run')
    // The notes of other tools name it, too.
    await page.waitForFunction(`document.querySelectorAll('.tools .row').length < ${count}`)
    await page.getByRole('link', { name: 'exec_run' }).click()
    const tool = page.getByRole('complementary', { name: 'The tool' })
    // A field for any id until the servers are known.
    await tool.getByRole('combobox', { name: 'serverId' }).selectOption({ label: 'for tools' })
    await tool.getByLabel('command', { exact: true }).fill('echo "<b>$WHO</b>"; exit 3')
    await tool.getByText('6 optional arguments').click()
    await tool.getByLabel('env').fill('{"WHO": "me"')
    await tool.getByRole('button', { name: 'Call' }).click()
    await tool.getByText('This is not JSON').waitFor()
    await tool.getByLabel('env').fill('{"WHO": "me"}')
    await tool.getByLabel('timeoutMs').fill('10000')
    await page.keyboard.press('Control+Enter')
    await tool.getByRole('heading', { name: 'Result' }).waitFor()
    await tool.getByText('"<b>me</b>\\n"').waitFor()
    expect(await tool.locator('.json').first().textContent()).toMatch(/exitCode: 3/)

    // A tool that fails responds, too.
    await tool.getByLabel('cwd').fill('/nowhere')
    await tool.getByRole('button', { name: 'Call' }).click()
    await tool.getByRole('region', { name: 'The result' }).getByText('failed', { exact: true }).waitFor()
    await tool.getByText('"bad_request"').waitFor()
    expect(problems).toEqual([])

    // The server that was chosen stays, and the arguments may be written as JSON.
    await page.goto(`${berth.info.base_url}/dashboard/mcp?tool=servers_update`)
    await page.getByRole('searchbox').fill('servers_')
    await tool.getByRole('combobox', { name: 'serverId' }).selectOption(server)
    await page.getByRole('link', { name: 'servers_get' }).click()
    expect(await tool.getByLabel('serverId').inputValue()).toBe(server)
    await tool.getByRole('button', { name: 'As JSON' }).click()
    expect(JSON.parse(await tool.getByLabel('Arguments, JSON').inputValue())).toEqual({ serverId: server })
    await tool.getByText('The same from a terminal').click()
    await tool.getByText(`curl -X POST ${berth.info.base_url}/mcp`).waitFor()
    await tool.getByRole('button', { name: 'Call' }).click()
    await tool.getByText('"for tools"').waitFor()
    await page.keyboard.press('Tab')
    await tool.getByRole('button', { name: 'Close the tool' }).focus()
    await page.keyboard.press('Escape')
    await tool.waitFor({ state: 'detached' })
  })

  test('a call that lasts is shown when it ends, and can be cancelled', async () => {
    const { berth } = tests
    const server = await berth.server({ task: 'slow' })
    await using watched = await tests.open('/dashboard/mcp?tool=exec_run')
    const tool = watched.page.getByRole('complementary', { name: 'The tool' })
    await tool.getByRole('combobox', { name: 'serverId' }).selectOption(server)
    // Longer than a response waits before it becomes a stream.
    await tool.getByLabel('command', { exact: true }).fill('sleep 1.5; echo late')
    await tool.getByRole('button', { name: 'Call' }).click()
    await tool.getByText('"late\\n"').waitFor()
    await tool.getByLabel('command', { exact: true }).fill('sleep 600')
    await tool.getByRole('button', { name: 'Call' }).click()
    const processes = async (): Promise<string> =>
      JSON.stringify((await berth.call('GET', `/servers/${server}/processes`)).body)
    await until(async () => (await processes()).includes('sleep 600'), 'the command runs')
    await tool.getByRole('button', { name: 'Cancel' }).click()
    await tool.getByRole('button', { name: 'Call' }).waitFor()
    await until(async () => !(await processes()).includes('sleep 600'), 'the command ends')
    expect(await tool.getByRole('heading', { name: 'Result' }).count()).toBe(0)
  })

  test('fit the window and hinder nobody, in every look', async () => {
    await using watched = await tests.open('/dashboard/mcp', NARROW)
    const { page, problems } = watched
    for (const path of ['/dashboard/mcp', '/dashboard/mcp?tool=projects_create']) {
      await showScreen(page, path)
      await page
        .getByText(path.includes('tool') ? 'Schema of the arguments' : 'servers_list')
        .first()
        .waitFor()
      expect(await faultsInAnyLook(page)).toEqual([])
      expect(problems).toEqual([])
    }
  })
})
