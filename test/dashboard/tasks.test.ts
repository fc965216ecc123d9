import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, live, NARROW, showScreen } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

const GOAL = `run: echo hello from the agent
write: colour.txt <<< blue
ask: Which colour?
write: colour.txt <<< {{answer}}
complete: The colour is {{answer}}.`

describe.skipIf(browserPath === null)('tasks on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('a task is run, asks, gets its response, and shows what it has changed', async () => {
    const serverId = await tests.berth.server({ task: 'work' })
    await using watched = await tests.open('/dashboard/tasks')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Run a task' }).click()
    await page.getByText('The scripted agent obeys lines such as').waitFor()
    await page.getByLabel('Goal').fill(GOAL)
    await page.getByLabel('Server').selectOption(serverId)
    const run = page.getByRole('button', { name: 'Run', exact: true })
    expect(await run.textContent()).toBe('RunCtrl ↵')
    expect(await run.getAttribute('title')).toBe('Ctrl+Enter')
    await page.getByLabel('Goal').press('Control+Enter')
    await page.locator('.reply textarea:focus').waitFor()
    await page.keyboard.type('green')
    expect(await page.getByRole('button', { name: 'Send' }).getAttribute('title')).toBe('Ctrl+Enter')
    await page.keyboard.press('Control+Enter')
    await page.locator('.conversation:focus').waitFor()
    await page.getByText('The colour is green.', { exact: true }).waitFor()
    await page.locator('.state').getByText('completed').waitFor()
    expect(await page.locator('.diff .removed').textContent()).toContain('-blue')
    expect(await page.locator('.diff .added').textContent()).toContain('+green')
    // Neither version ends with a line break, which is no difference.
    expect(await page.locator('.diff:has(.removed)').textContent()).toMatch(/\+green\n$/)
    expect(await page.locator('.diff:has(.removed)').textContent()).not.toContain('No newline')
    await page.getByText('$ echo hello from the agent').click()
    await page.getByText('hello from the agent', { exact: true }).waitFor()

    const first = page.url()
    await page.getByRole('button', { name: 'Run again', exact: true }).click()
    await page.getByText('Started again: this is the new task.').waitFor()
    await page.getByLabel(/The agent waits for your response/).waitFor()
    expect(page.url()).not.toBe(first)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.locator('.state').getByText('cancelled').waitFor()
    expect(problems).toEqual([])
  })

  test('a task that failed by its goal is run again with another one', async () => {
    const serverId = await tests.berth.server({ task: 'fixed' })
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/tasks`, {
      goal: 'write: a.txt blue',
    })
    await using watched = await tests.open(`/dashboard/tasks/${body.task_id}`)
    const { page, problems } = watched
    await page.locator('.state').getByText('failed').waitFor()
    await page.getByRole('button', { name: 'Edit and run again' }).click()
    const goal = page.getByLabel('Goal', { exact: true })
    expect(await goal.inputValue()).toBe('write: a.txt blue')
    expect(await page.getByLabel('Server').inputValue()).toBe(serverId)
    await goal.fill('write: a.txt <<< blue')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('Started again: this is the new task.').waitFor()
    await page.locator('.state').getByText('completed').waitFor()
    expect(page.url()).not.toEndWith(body.task_id)
    await page.getByRole('link', { name: 'The one before' }).click()
    await page.waitForURL((url) => url.pathname.endsWith(body.task_id))
    // A notice goes with its screen.
    await page.getByText('Started again: this is the new task.').waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('a failed task shows why in few words, and its command shows what berth refused', async () => {
    const serverId = await tests.berth.server({ task: 'cut off' })
    const line = 'seq 3; curl -s -m 3 http://10.0.0.1/; exit 3'
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/tasks`, { goal: `run: ${line}` })
    await using watched = await tests.open(`/dashboard/tasks/${body.task_id}`)
    const { page, problems } = watched
    const why = page.locator('.said.failed')
    await why.getByText('Why it failed').waitFor()
    expect(await why.locator('.words').textContent()).toBe(`The command ${line} ended with exit code 3.`)
    expect(await why.textContent()).not.toContain('10.0.0.1:80')
    const tool = page.locator('.tool.bad')
    await tool.getByText("berth refused the server's connection to 10.0.0.1:80").waitFor()
    expect(await tool.locator('pre').textContent()).toBe('1\n2\n3\n')
    expect(await faultsInAnyLook(page)).toEqual([])
    expect(problems).toEqual([])
  })

  test('a response that arrives after a newer change of the stream changes nothing', async () => {
    const serverId = await tests.berth.server({ task: 'late' })
    await using watched = await tests.open('/dashboard/tasks')
    const { page } = watched
    const asked = new Promise((resolve) =>
      page.on('websocket', (socket) =>
        socket.on('framereceived', ({ payload }) => {
          if (String(payload).includes('"awaiting_input"')) resolve(null)
        }),
      ),
    )
    await page.reload()
    await live(page)
    await page.route(/\/tasks\/task_[^/]+$/, async (route) => {
      if (route.request().resourceType() === 'document') return route.continue()
      const response = await route.fetch()
      const { task } = await response.json()
      await asked
      await route.fulfill({ response, json: { task: { ...task, status: 'running', question: undefined } } })
    })
    await page.getByRole('button', { name: 'Run a task' }).first().click()
    await page.getByLabel('Goal').fill('ask: Really?')
    await page.getByLabel('Server').selectOption(serverId)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByLabel(/The agent waits for your response/).waitFor()
  })

  test('a build shows its phases, its log and the app in a frame without rights over the page', async () => {
    const serverId = await tests.berth.server()
    const goal = 'write: index.html <<< <h1>Bakery</h1><script>top.document.title = "taken"</script>'
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/builds`, { goal })
    await using watched = await tests.open(`/dashboard/builds/${body.build_id}`)
    const { page } = watched
    await page.locator('.state').getByText('completed').waitFor()
    expect(await page.locator('.phases .done').count()).toBe(6)
    expect(await page.locator('.phases .done small').first().textContent()).toMatch(/^\d+(\.\d)? m?s$/)
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('link', { name: 'index.html' }).waitFor()
    await page.getByRole('link', { name: 'Preview' }).click()
    await page.frameLocator('iframe').getByRole('heading', { name: 'Bakery' }).waitFor()
    expect(await page.title()).not.toBe('taken')
  })

  test('a build that fails marks the phase that failed', async () => {
    const serverId = await tests.berth.server()
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/builds`, { goal: 'run: exit 3' })
    await using watched = await tests.open(`/dashboard/builds/${body.build_id}`)
    const { page } = watched
    await page.locator('.phases .failed').waitFor()
    expect(await page.locator('.phases .failed').textContent()).toMatch(/^implement failed after /)
  })

  test('the screens hinder nobody and fit, in every look', async () => {
    const serverId = await tests.berth.server()
    const hostile = `<img src=x onerror=alert(1)> ${'long '.repeat(60)}`
    const { body } = await tests.berth.call('POST', `/servers/${serverId}/tasks`, {
      goal: `ask: ${hostile}\nrun: echo '${hostile}'`,
    })
    await using watched = await tests.open('/dashboard/tasks', NARROW)
    const { page } = watched
    for (const [path, shown] of [
      ['/dashboard/tasks', page.getByRole('heading', { level: 1, name: 'Tasks' })],
      [`/dashboard/tasks/${body.task_id}`, page.getByLabel(/The agent waits/)],
      ['/dashboard/builds', page.getByRole('heading', { level: 1, name: 'Builds' })],
    ] as const) {
      await showScreen(page, path)
      await shown.waitFor()
      expect(await page.locator('main img').count()).toBe(0)
      expect(await faultsInAnyLook(page)).toEqual([])
    }
  })
})
