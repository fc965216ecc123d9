import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('test controls on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('the requests and the timeline say what emptied the journal, and when', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/requests')
    const { page, problems } = watched
    const emptied = async (words: string, call: () => Promise<unknown>): Promise<void> => {
      const begun = Date.parse((await berth.control('GET', '/clock')).body.now)
      await call()
      const note = page.locator('.journal-since', { hasText: `Requests ${words} at` })
      await note.waitFor()
      const at = Date.parse((await note.locator('time').getAttribute('datetime')) ?? '')
      expect(at).toBeGreaterThanOrEqual(begun)
      expect((await berth.control('GET', '/health')).body.journal.since).toBe(new Date(at).toISOString())
    }
    await page.locator('.journal-since', { hasText: 'Requests kept since the start at' }).waitFor()
    await berth.control('POST', '/snapshots', { name: 'emptying' })
    await emptied('emptied by the restore', () => berth.control('POST', '/snapshots/emptying/restore'))
    await emptied('cleared', () => berth.control('DELETE', '/requests'))
    await page.getByRole('link', { name: 'Timeline' }).click()
    await page.locator('.journal-since', { hasText: 'cleared at' }).waitFor()
    await page.getByRole('link', { name: 'Requests', exact: true }).click()
    await emptied('emptied by the reset', () => berth.control('POST', '/reset'))
    await berth.control('DELETE', '/snapshots/emptying')
    // One that is opened later says the same.
    await using other = await tests.open('/dashboard/requests')
    await other.page.locator('.journal-since', { hasText: 'emptied by the reset at' }).waitFor()
    expect(problems).toEqual([])
  })

  test('a request that went wrong becomes a fault; the state is saved, reset and restored', async () => {
    const { berth } = tests
    await berth.server({ task: 'kept' })
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(404)
    await using watched = await tests.open('/dashboard/requests')
    const { page, problems } = watched
    await page.getByText('/servers/srv_none/exec').first().click()
    await page.getByRole('button', { name: /Make a fault of it/ }).click()
    await page.getByLabel('429 too many requests').check()
    await page.getByRole('button', { name: 'Set the fault' }).click()
    await page.getByText('A fault is set').first().waitFor()
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(429)

    await page.getByRole('link', { name: 'Test controls' }).click()
    await page.getByText('Applied once').waitFor()
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('None is set.').first().waitFor()
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(404)

    await page.getByLabel('Name of the snapshot').fill('mine')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.locator('.card', { hasText: 'mine' }).waitFor()
    await page.getByText(/saved \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/).waitFor()
    await berth.server({ task: 'newcomer' })
    await page.getByRole('button', { name: 'Compare with the current state' }).first().click()
    const differences = page.getByRole('dialog', { name: 'What differs from “mine”' })
    await differences.getByText('newcomer').first().waitFor()
    expect(await differences.locator('details', { hasText: 'servers' }).first().textContent()).toContain(
      '1 added',
    )
    await differences.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Reset the state' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await page.getByText('The instance was reset.').waitFor()
    await page.locator('.card', { hasText: 'before-reset' }).getByText('saved to undo').waitFor()
    const saved = page.locator('.card').filter({ has: page.getByRole('button', { name: 'Fork' }) })
    expect(await saved.locator('strong').allTextContents()).toEqual(['mine', 'before-reset'])
    await saved.filter({ hasText: 'mine' }).getByRole('button', { name: 'Fork' }).click()
    const line = `berth serve --snapshot ${berth.info.data_dir}/snapshots/mine --ephemeral --port 0`
    await page.getByRole('dialog').getByText(line, { exact: true }).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    expect((await berth.call('GET', '/servers')).body.servers).toEqual([])
    await page.locator('.card', { hasText: 'mine' }).getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByText('The state is that of the snapshot “mine”.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).last().click()
    await page.getByText('The state is that of the snapshot “before-restore”.').waitFor()
    expect((await berth.call('GET', '/servers')).body.servers).toEqual([])
    await page.locator('.card', { hasText: 'mine' }).getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    // The first notice of it is there still.
    await saved.getByText('before-restore-2', { exact: true }).waitFor()
    // The second restore has left what undoes the first one alone.
    expect((await saved.locator('strong').allTextContents()).sort()).toEqual([
      'before-reset',
      'before-restore',
      'before-restore-2',
      'mine',
    ])
    await page.getByRole('button', { name: 'Delete the snapshot before-restore', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('before-restore', { exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Servers' }).click()
    await page.getByRole('link', { name: 'kept' }).waitFor()
    expect(problems.filter((problem) => !problem.includes('WebSocket'))).toEqual([])
  })

  test('that a reset and a restore empty the journal is said, and a fault leads to no request that is gone', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    const fault = { match: { operation: 'templates.list' }, effect: { error: { status: 503 } }, times: 1 }
    await berth.control('POST', '/faults', fault)
    expect((await berth.call('GET', '/templates')).status).toBe(503)
    await page.getByRole('link', { name: 'Applied once' }).waitFor()
    await berth.control('POST', '/snapshots', { name: 'struck' })
    const dialog = page.getByRole('dialog')
    const card = page.locator('.card', { hasText: 'struck' }).filter({ hasText: 'saved' })
    for (const button of [
      page.getByRole('button', { name: 'Reset the state' }),
      card.getByRole('button', { name: 'Restore' }),
    ]) {
      await button.click()
      await dialog.getByText('The journal of requests is emptied, and an undo does not').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
    }
    await berth.control('POST', '/snapshots/struck/restore')
    await page.getByText('Applied once of at most 1, of which the journal has no request').waitFor()
    await page.getByText('Applied once of at most 1').waitFor()
    expect(await page.getByRole('link', { name: 'Applied once' }).count()).toBe(0)
    await berth.control('DELETE', '/faults')
    await berth.control('DELETE', '/snapshots/struck')
  })

  test('a spent fault is listed below those that may apply, and applies again once it is armed', async () => {
    const { berth } = tests
    const status = async () => (await berth.call('GET', '/templates')).status
    const effect = { error: { status: 503 } }
    await berth.control('POST', '/faults', { match: { operation: 'templates.list' }, effect, times: 1 })
    await berth.control('POST', '/faults', { match: { operation: 'keys.list' }, effect, times: 1 })
    expect([await status(), await status()]).toEqual([503, 200])
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    const cards = page.getByRole('region', { name: 'Faults' }).locator('.cards > li')
    const spent = cards.filter({ has: page.getByText('spent', { exact: true }) })
    await spent.first().waitFor()
    expect(await cards.locator('p > code').allTextContents()).toEqual(['keys.list', 'templates.list'])
    expect(await spent.locator('p > code').allTextContents()).toEqual(['templates.list'])
    expect(await hindrances(page)).toEqual([])
    await spent.getByRole('button', { name: 'Arm again' }).click()
    await spent.waitFor({ state: 'detached' })
    const { faults } = (await berth.control('GET', '/faults')).body
    expect(faults).toMatchObject([
      { match: { operation: 'keys.list' }, hits: 0 },
      { match: { operation: 'templates.list' }, effect, times: 1, hits: 0 },
    ])
    expect([await status(), await status()]).toEqual([503, 200])
    await spent.getByRole('button', { name: 'Remove' }).click()
    await spent.waitFor({ state: 'detached' })
    await berth.control('DELETE', '/faults')
  })

  test('a template becomes a fault of chosen requests, with its JSON and its lines', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/controls')
    const { page, problems } = watched
    await page.getByRole('button', { name: '502 as HTML' }).click()
    const dialog = page.getByRole('dialog', { name: 'Set a fault' })
    await dialog.getByLabel('Requests', { exact: true }).selectOption('templates.list')
    await dialog.getByText('The fault as JSON').click()
    await dialog.getByText('"content_type": "text/html"').waitFor()
    await dialog.getByText('The same from a terminal').click()
    await dialog
      .getByText('berth faults add --operation templates.list --respond 502 --content-type text/html')
      .waitFor()
    await dialog.getByRole('button', { name: 'Set the fault' }).click()
    await page.getByText('502 text/html').waitFor()
    const response = await berth.fetch('/templates')
    expect([response.status, response.headers.get('content-type')]).toEqual([502, 'text/html'])
    await page.getByText('Applied once').waitFor()
    for (const [template, effect] of [
      ['429', { error: { status: 429, retry_after: 30 } }],
      ['Slow', { delay_ms: 5_000 }],
      ['Cut off', { truncate: { bytes: 10 } }],
      ['Lost response', { lose_response: true }],
    ] as const) {
      await berth.control('DELETE', '/faults')
      await page.getByText('None is set.').first().waitFor()
      await page.getByRole('button', { name: template, exact: true }).click()
      await dialog.getByRole('button', { name: 'Set the fault' }).click()
      await page.getByText('Has not applied yet').waitFor()
      expect((await berth.control('GET', '/faults')).body.faults).toMatchObject([{ effect, times: 1 }])
    }
    await berth.control('DELETE', '/faults')
    expect(problems).toEqual([])
  })

  test('each part has an address of its own, to which links lead, and all are shown together', async () => {
    const { berth } = tests
    await berth.control('POST', '/faults', { match: { operation: 'keys.list' }, effect: { delay_ms: 1 } })
    await using watched = await tests.open('/dashboard/controls')
    const { page, problems } = watched
    const parts = ['Faults', 'Clock', 'State', 'Scenarios', 'Accounts']
    const headings = page.getByRole('heading', { level: 2 })
    await headings.getByText('Accounts').waitFor()
    await headings.getByText('Clock').waitFor()
    expect(await headings.allTextContents()).toEqual(parts)
    const links = page.getByRole('navigation', { name: 'Test controls' })
    await links.getByRole('link', { name: 'Faults 1' }).waitFor()
    for (const part of parts) {
      await links.getByRole('link', { name: part }).click()
      await page.waitForURL(`**/dashboard/controls/${part.toLowerCase()}`)
      await headings.getByText(part, { exact: true }).waitFor()
      expect(await headings.allTextContents()).toEqual([part])
      expect(await faultsInAnyLook(page)).toEqual([])
    }
    await page.getByRole('link', { name: 'Show' }).click()
    await page.getByText('1 ms later on keys.list').waitFor()
    expect(await headings.allTextContents()).toEqual(['Faults'])
    await berth.control('DELETE', '/faults')
    expect(problems).toEqual([])
  })

  test('an account is created with a label, and not before the dialog is sent', async () => {
    await using watched = await tests.open('/dashboard/controls')
    const { page, problems } = watched
    const dialog = page.getByRole('dialog', { name: 'Create an account' })
    await page.getByRole('button', { name: 'Create an account' }).click()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    const labels = async () =>
      (await tests.berth.control('GET', '/accounts')).body.accounts.map(
        ({ label }: { label: string }) => label,
      )
    expect(await labels()).not.toContain('')
    await page.getByRole('button', { name: 'Create an account' }).click()
    await dialog.getByLabel('Label').fill('worker 1')
    await dialog.getByText('The same from a terminal').click()
    await dialog.getByText("berth accounts create --label 'worker 1'", { exact: true }).waitFor()
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page
      .getByRole('dialog', { name: 'The key of the account' })
      .getByRole('button', { name: 'Done' })
      .click()
    await page.locator('.card').getByText('worker 1', { exact: true }).waitFor()
    expect(await labels()).toContain('worker 1')
    expect(problems).toEqual([])
  })

  test('the clock is moved and frozen', async () => {
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    await page.getByRole('button', { name: '+1d' }).click()
    await page.getByText('1 d ahead').waitFor()
    await page.getByRole('button', { name: 'Freeze' }).click()
    await page.getByText('frozen').first().waitFor()
    await page.getByRole('button', { name: 'Reset', exact: true }).click()
    await page.getByText('1 d ahead').waitFor({ state: 'detached' })
    // A page that is closed sends nothing more.
    await until(
      async () => (await tests.berth.control('GET', '/clock')).body.offset_ms === 0,
      'the clock is reset',
    )
  })

  test('the clock goes on, and asks before it passes the end of this session', async () => {
    const { berth } = tests
    // Weeks before the end of the month, when budgets begin anew.
    await berth.control('POST', '/clock', { set: '2040-01-05T00:00:00Z' })
    await berth.server()
    const offset = async (): Promise<number> => (await berth.control('GET', '/clock')).body.offset_ms
    const offsetBefore = await offset()
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    const clock = page.getByRole('region', { name: 'Clock', exact: true })
    const shown = clock.locator('p > code').first()
    const before = (await shown.textContent()) ?? ''
    await clock.locator('p > code').filter({ hasNotText: before }).first().waitFor()

    await clock.getByRole('button', { name: '+30d' }).click()
    const dialog = page.getByRole('dialog', { name: 'Move the clock by 30 d?' })
    await dialog.getByText("This browser's session ends on the way", { exact: false }).waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await clock
      .getByRole('button', { name: 'Go to the next: a budget reaches a mark, or the month ends' })
      .click()
    await page.getByText('Running servers are charged for', { exact: false }).waitFor()
    await clock.getByText('The end of your own session is left out', { exact: false }).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(Math.abs((await offset()) - offsetBefore)).toBeLessThan(1_000)
    await berth.control('POST', '/clock', { reset: true })
  })

  test('what happens next is that of the new state after a reset', async () => {
    const { berth } = tests
    const serverId = await berth.server()
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    const clock = page.getByRole('region', { name: 'Clock', exact: true })
    await clock.getByText('What happens next').click()
    const timers = clock.getByRole('row')
    const { status } = await berth.call('POST', `/servers/${serverId}/terminals`, {})
    expect(status).toBe(201)
    await timers.filter({ hasText: 'terminal.hang_up' }).waitFor()
    await berth.control('POST', '/reset')
    await timers.filter({ hasText: 'terminal.hang_up' }).waitFor({ state: 'detached' })
  })

  test('a scenario is written, its mistakes are shown, and it is tried, moved and deleted', async () => {
    await tests.berth.control('DELETE', '/scenarios')
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    const set = async (text: string): Promise<void> => {
      await page.getByRole('textbox', { name: 'Content of scenario.json' }).click()
      await page.keyboard.press('Control+a')
      await page.keyboard.insertText(text)
    }
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'New scenario' }).click()
    await set('{\n  "match": "paint",\n  "steps": [\n    { "run": "{{nope}}" }\n  ]\n}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog
      .getByText('Line 4, column 14: "steps[0].run": expected {{…}} with the name of a value')
      .waitFor()
    expect(await dialog.locator('.cm-mistake').textContent()).toContain('{{nope}}')
    await set('{\n  "match": "paint"\n  "steps": []\n}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText(/^Line 3, column 3: expected/).waitFor()
    await set(
      '{"name":"painter","match":{"regex":"paint (?P<colour>.+)"},"steps":[{"run":"echo {{colour}}"}]}',
    )
    await dialog.getByLabel('Goal to try').fill('paint red')
    await dialog.getByRole('button', { name: 'Try' }).click()
    await dialog.getByText('would take it').waitFor()
    await dialog.getByText("VALUE_colour='red'").waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.locator('.card', { hasText: 'painter' }).waitFor()

    await page.getByRole('button', { name: 'New scenario' }).click()
    await set('{"name":"second","match":"paint red","steps":[{"complete":"no"}]}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.locator('.card', { hasText: 'second' }).waitFor()
    await page.getByLabel('Goal to try').fill('paint red')
    await page.getByRole('button', { name: 'Try' }).click()
    await page.locator('.card.found', { hasText: 'second' }).waitFor()
    await page.getByRole('button', { name: 'Actions on the scenario second' }).click()
    await page.getByRole('menuitem', { name: 'Try it later' }).click()
    await page.locator('.cards > li:nth-child(1)', { hasText: 'painter' }).waitFor()
    await page.getByRole('button', { name: 'Actions on the scenario second' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.locator('.card', { hasText: 'second' }).waitFor({ state: 'detached' })
    const { scenarios } = (await tests.berth.control('GET', '/scenarios')).body
    expect(scenarios.map(({ name }: { name: string }) => name)).toEqual(['painter'])
    await tests.berth.control('DELETE', '/scenarios')
  })

  test('a response that comes late does not undo a newer one', async () => {
    const { berth } = tests
    const set = (name: string) =>
      berth.control('PUT', '/scenarios', { scenarios: [{ name, match: name, steps: [{ complete: name }] }] })
    await set('older')
    await using watched = await tests.open('/dashboard/servers')
    const { page, problems } = watched
    const { promise: mayCome, resolve: come } = Promise.withResolvers<void>()
    const { promise: isLate, resolve: late } = Promise.withResolvers<void>()
    const { promise: hasCome, resolve: came } = Promise.withResolvers<void>()
    let isFirst = true
    await page.route('**/_berth/scenarios', async (route) => {
      if (!isFirst) return await route.continue()
      isFirst = false
      const response = await route.fetch()
      late()
      await mayCome
      await route.fulfill({ response })
      came()
    })
    await page.getByRole('link', { name: 'Test controls' }).click()
    await isLate
    await set('newer')
    await page.getByRole('button', { name: 'Actions on the scenario newer' }).waitFor()
    come()
    await hasCome
    // The response is read in the page by now: what it asks for next comes after it.
    await page.evaluate('fetch("/_berth/health").then(() => {})')
    expect(await page.getByRole('button', { name: 'Actions on the scenario older' }).count()).toBe(0)
    expect(problems).toEqual([])
    await berth.control('DELETE', '/scenarios')
  })

  test('an edit of a scenario that another client has moved changes nothing', async () => {
    const { berth } = tests
    const [first, second] = ['first', 'second'].map((name) => ({
      name,
      match: name,
      steps: [{ complete: name }],
    }))
    const set = (...scenarios: unknown[]) => berth.control('PUT', '/scenarios', { scenarios })
    const names = async () =>
      (await berth.control('GET', '/scenarios')).body.scenarios.map(({ name }: { name: string }) => name)
    await set(first, second)
    await using watched = await tests.open('/dashboard/controls')
    const { page } = watched
    const section = page.getByRole('region', { name: 'Scenarios' })
    const card = (n: number, text: string) =>
      section.locator(`.cards > li:nth-child(${n})`, { hasText: text })
    await page.getByRole('button', { name: 'Actions on the scenario first' }).click()
    await page.getByRole('menuitem', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox').getByText('"first"').first().waitFor()
    await set(second, first)
    await card(1, 'second').waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('Another client has changed the scenarios meanwhile', { exact: false }).waitFor()
    expect(await names()).toEqual(['second', 'first'])
    await dialog.getByRole('button', { name: 'Cancel' }).click()

    await page.getByRole('button', { name: 'Actions on the scenario first' }).click()
    await page.getByRole('menuitem', { name: 'Try it earlier' }).click()
    await card(1, 'first').waitFor()
    expect(await names()).toEqual(['first', 'second'])
    await berth.control('DELETE', '/scenarios')
  })

  test('what a task did becomes a scenario, which the same goal then follows', async () => {
    const { berth } = tests
    const serverId = await berth.server()
    const goal = 'Greet\nwrite: hello.txt <<< hi\nrun: cat hello.txt\ncomplete: Greeted.'
    const { body: task } = await berth.call('POST', `/servers/${serverId}/tasks`, { goal })
    await using watched = await tests.open(`/dashboard/tasks/${task.task_id}`)
    const { page } = watched
    await page.getByRole('button', { name: 'Save as scenario' }).click()
    const dialog = page.getByRole('dialog', { name: 'Save as scenario' })
    await dialog.getByRole('textbox').getByText('"verbatim"').waitFor()
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('The scenario is set.').waitFor()
    const { scenarios } = (await berth.control('GET', '/scenarios')).body
    expect(scenarios).toEqual([
      {
        name: 'Greet …',
        match: goal,
        steps: [
          { write: { path: 'hello.txt', content: 'hi', verbatim: true } },
          { run: 'cat hello.txt' },
          { complete: 'Greeted.' },
        ],
        source: 'control',
      },
    ])
    await page.getByRole('button', { name: 'Run again', exact: true }).click()
    await page.getByText('Follows the scenario').waitFor()
    await berth.control('DELETE', '/scenarios')
  })

  test('the screen hinders nobody and fits, in every look', async () => {
    await tests.berth.control('POST', '/faults', {
      match: { path: '/servers/**' },
      effect: { delay_ms: 1 },
    })
    await tests.berth.control('PUT', '/scenarios', {
      scenarios: [
        {
          name: `<b>long</b> ${'name '.repeat(30)}`,
          match: { glob: 'look*' },
          steps: [{ run: 'x'.repeat(300) }, { ask: 'Really?' }],
        },
      ],
    })
    await using watched = await tests.open('/dashboard/controls', NARROW)
    const { page } = watched
    await page.getByText('1 ms later').first().waitFor()
    await page.getByLabel('Goal to try').fill('look')
    await page.getByRole('button', { name: 'Try' }).click()
    await page.getByText('would take it').waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
  })
})
