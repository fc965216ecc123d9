import { describe, expect, test } from 'bun:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW } from '../support/dashboard.ts'
import type { WatchedPage } from '../support/watched-page.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('commands on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  /** Opens the part of a server, and waits until its line takes what is typed. */
  async function opened(server: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
    const watched = await tests.open(`/dashboard/servers/${server}/commands`, options)
    await typable(watched.page)
    return watched
  }

  const typable = (page: Page): Promise<void> => page.locator('.command-line input:focus').waitFor()

  test('output is shown as it is printed, goes on behind another screen, and ends with the exit code', async () => {
    const { berth } = tests
    const server = await berth.server()
    await using watched = await opened(server)
    const { page, problems } = watched
    await page.keyboard.type('echo first; cat pipe; echo oh >&2; exit 3')
    await berth.exec(server, 'mkfifo pipe')
    await page.keyboard.press('Enter')
    const run = page.getByRole('article', { name: 'Command echo first' })
    await run.getByText('first', { exact: true }).waitFor()
    await run.getByRole('status').getByText('running').waitFor()
    const parts = page.getByRole('navigation', { name: 'Parts of the server' })
    await parts.getByRole('link', { name: 'Secrets' }).click()
    await berth.exec(server, 'echo second > pipe')
    await parts.getByRole('link', { name: 'Commands' }).click()
    await run.getByRole('status').getByText('exit 3').waitFor()
    await run.getByText('second').waitFor()
    expect(await run.locator('.stderr').textContent()).toBe('oh\n')
    await page.getByRole('button', { name: 'Clear' }).click()
    await run.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('a long line without an end is shown at once, and progress is overwritten', async () => {
    const { berth } = tests
    const server = await berth.server()
    await using watched = await opened(server)
    const { page, problems } = watched
    // As much of it as the page keeps.
    await page.keyboard.type("printf '10 %%\\r20 %%\\r\\n'; head -c 190000 /dev/zero | tr '\\0' x; exit 3\n")
    const run = page.getByRole('article', { name: 'Command printf' })
    await run.getByRole('status').getByText('exit 3').waitFor()
    const began = performance.now()
    expect(await run.locator('pre').textContent()).toBe(`20 %\n${'x'.repeat(190_000)}`)
    // A pattern that looks from each place of the line takes a minute.
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(problems).toEqual([])
  })

  test('by keyboard alone: earlier lines are kept over a reload, and a key ends what runs', async () => {
    const { berth } = tests
    const [server, other] = [await berth.server(), await berth.server()]
    await using watched = await opened(server)
    const { page } = watched
    const line = page.getByLabel('Command', { exact: true })
    const exit = page.getByRole('status').getByText('exit 0')
    for (const [at, command] of ['echo one', 'echo two'].entries()) {
      await page.keyboard.type(`${command}\n`)
      await exit.nth(at).waitFor()
    }
    await page.reload()
    await typable(page)
    await page.keyboard.type('draft')
    await page.keyboard.press('ArrowUp')
    expect(await line.inputValue()).toBe('echo two')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    expect(await line.inputValue()).toBe('echo one')
    for (const _ of [1, 2]) await page.keyboard.press('ArrowDown')
    expect(await line.inputValue()).toBe('draft')
    await line.fill('echo began; sleep 3600')
    await page.keyboard.press('Enter')
    await page.getByText('began', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('status').getByText('cancelled').waitFor()
    // The command has ended on the server, too.
    const gone = 'while pgrep -x sleep >/dev/null; do sleep 0.1; done; echo gone'
    expect((await berth.exec(server, gone)).stdout).toBe('gone\n')
    await page.goto(`${berth.info.base_url}/dashboard/servers/${other}/commands`)
    await typable(page)
    await line.press('ArrowUp')
    expect(await line.inputValue()).toBe('')
  })

  test('what is printed becomes no markup, and of much output the end is shown', async () => {
    const server = await tests.berth.server()
    await using watched = await opened(server)
    const { page } = watched
    await page.keyboard.type(
      `seq 1 200000; printf '\\033[31m<img src=x onerror=alert(1)>\\033[0m 50%%\\r100%%\\n'\n`,
    )
    await page.getByRole('status').getByText('exit 0').waitFor()
    const output = await page.locator('.run .output').textContent()
    expect(output).toEndWith('200000\n100%\n')
    expect(output?.length).toBeLessThanOrEqual(200_000)
    await page.getByText('Only the end is shown').waitFor()
    expect(await page.locator('main img').count()).toBe(0)
  })

  test('what cannot be run says why', async () => {
    const { berth } = tests
    const server = await berth.server()
    await berth.control('POST', '/faults', {
      match: { operation: 'exec.run', client: 'dashboard' },
      effect: { error: { status: 502 } },
      times: 1,
    })
    await using watched = await opened(server)
    const { page } = watched
    await page.keyboard.type('true\n')
    await page.getByRole('alert').getByText('The fault').waitFor()
    await page.getByRole('button', { name: 'Run true again' }).click()
    await page.getByRole('status').getByText('exit 0').waitFor()
  })

  test('the screen hinders nobody and fits, in every look', async () => {
    const server = await tests.berth.server()
    await using watched = await opened(server, NARROW)
    const { page } = watched
    await page.keyboard.type(`echo ${'long'.repeat(80)}; echo ${'wide '.repeat(50)} >&2; exit 1\n`)
    await page.getByRole('status').getByText('exit 1').waitFor()
    await page.getByText('The same from a terminal').click()
    expect(await faultsInAnyLook(page)).toEqual([])
  })
})
