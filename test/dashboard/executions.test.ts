import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('executions on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  /** Starts a command that runs on, and returns its id. */
  const detach = async (server: string, command: string): Promise<string> =>
    (await tests.berth.call('POST', `/servers/${server}/exec`, { command, detach: true })).body.execution.id

  test('those of others come and end in the list of their server, with state, exit code, time and size', async () => {
    const { berth } = tests
    const [server, other] = [await berth.server(), await berth.server()]
    await berth.exec(server, 'mkfifo pipe')
    await using watched = await tests.open(`/dashboard/servers/${server}/executions`)
    const { page, problems } = watched
    await page.getByText('No executions on this server').waitFor()
    await detach(other, 'echo elsewhere')
    await detach(server, 'read line < pipe; printf 12345; exit 3')
    const row = page.locator('.executions .row', { hasText: 'read line' })
    await row.locator('.state').getByText('running').waitFor()
    expect(await page.getByText('elsewhere').count()).toBe(0)
    await berth.exec(server, 'echo go > pipe')
    await row.locator('.state').getByText('exit 3').waitFor()
    await row.getByText('5 B', { exact: true }).waitFor()
    expect(await row.locator('time').count()).toBe(1)
    expect(await faultsInAnyLook(page)).toEqual([])
    // Ten minutes after its end it is gone, by berth's clock.
    await berth.control('POST', '/clock', { advance: '11m' })
    await page.getByText('No executions on this server').waitFor()
    await berth.control('POST', '/clock', { reset: true })
    expect(problems).toEqual([])
  })

  test('its output is shown as it is printed, in order and as text, and goes on after the page was left', async () => {
    const { berth } = tests
    const server = await berth.server()
    await berth.exec(server, 'mkfifo pipe')
    const id = await detach(server, 'printf "first? "; cat pipe; echo "<img src=x>" >&2; exit 4')
    await using watched = await tests.open(`/dashboard/servers/${server}/executions`)
    const { page, problems } = watched
    await page.getByRole('link', { name: 'printf "first? "' }).click()
    await page.waitForURL(`**/executions/${id}`)
    const output = page.getByRole('region', { name: 'Output' })
    await output.getByText('first?').waitFor()
    await page.reload()
    await output.getByText('first?').waitFor()
    await berth.exec(server, 'echo second > pipe')
    await page.getByRole('status').getByText('exit 4').waitFor()
    await output.getByText('<img src=x>').waitFor()
    expect(await output.textContent()).toBe('first? second\n<img src=x>\n')
    expect(await output.locator('.stderr').textContent()).toBe('<img src=x>\n')
    expect(await page.getByRole('button', { name: 'Cancel' }).count()).toBe(0)
    await page.getByText('The same from a terminal').click()
    await page.getByText(`berth executions output ${id}`, { exact: true }).waitFor()
    await page.keyboard.press('~')
    const drawer = page.getByRole('region', { name: 'Drawer' })
    await drawer.getByRole('button', { name: 'Object', exact: true }).click()
    await drawer.getByText('"exited"').waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
    expect(problems).toEqual([])
  })

  test('one is started from the line of commands, cancelled, run again and deleted', async () => {
    const { berth } = tests
    const server = await berth.server()
    await using watched = await tests.open(`/dashboard/servers/${server}/commands`)
    const { page, problems } = watched
    const line = page.getByLabel('Command', { exact: true })
    const background = page.getByRole('button', { name: 'Run in the background' })
    expect(await background.isDisabled()).toBe(true)
    await line.fill('echo began; sleep 3600')
    await background.click()
    await page.waitForURL('**/executions/exe_*')
    const first = page.url()
    await page.getByText('began', { exact: true }).waitFor()
    const { processes } = (await berth.call('GET', `/servers/${server}/processes`)).body
    expect(processes.map(({ command }: { command: string }) => command)).toContain('sleep 3600')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page
      .getByRole('status')
      .getByText(/^exit \d+$/)
      .waitFor()
    const gone = 'while pgrep -x sleep >/dev/null; do sleep 0.1; done; echo gone'
    expect((await berth.exec(server, gone)).stdout).toBe('gone\n')
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.waitForURL((url) => url.href !== first)
    await page.getByRole('status').getByText('running').waitFor()
    // It runs on without the page, and says so to a page that comes back.
    await page.goto(`${berth.info.base_url}/dashboard/servers/${server}/commands`)
    await line.press('ArrowUp')
    expect(await line.inputValue()).toBe('echo began; sleep 3600')
    await page.getByRole('link', { name: 'Executions' }).click()
    await page.locator('.executions .state').nth(1).waitFor()
    expect(await page.locator('.executions .state').allTextContents()).toEqual([
      'running',
      expect.any(String),
    ])
    await page.goto(first)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL('**/executions')
    await page.locator('.executions .row-link').first().waitFor()
    expect(await page.locator('.executions .row-link').count()).toBe(1)
    await page.goto(first)
    await page.getByRole('heading', { name: 'No such execution' }).waitFor()
    expect(problems).toEqual([])
  })

  test('of much output, more than berth keeps, the end is shown', async () => {
    const { berth } = tests
    const server = await berth.server()
    const id = await detach(server, 'seq 1 400000')
    await using watched = await tests.open(`/dashboard/servers/${server}/executions/${id}`)
    const { page } = watched
    const output = page.getByRole('region', { name: 'Output' })
    await page.getByRole('status').getByText('exit 0').waitFor()
    await page.getByText('Only the end is shown').waitFor()
    const text = (await output.textContent()) ?? ''
    expect(text).toEndWith('399999\n400000\n')
    expect(text.length).toBeLessThanOrEqual(200_000)
  })

  test('one that its server ends says so, and a process leads to its execution', async () => {
    const { berth } = tests
    const server = await berth.server()
    const id = await detach(server, 'sleep 3600')
    await using watched = await tests.open(`/dashboard/servers/${server}/processes`)
    const { page, problems } = watched
    await page.getByRole('link', { name: 'execution', exact: true }).first().click()
    await page.waitForURL(`**/executions/${id}`)
    await page.getByRole('status').getByText('running').waitFor()
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await page.getByRole('status').getByText('ended').waitFor()
    expect(problems).toEqual([])
  })
})
