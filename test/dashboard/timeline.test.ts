import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the timeline on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests({ 'allow-local-webhooks': true })
  const river = (page: Page) => page.getByRole('region', { name: 'What happened, the newest first' })

  test('an empty instance shows how to begin', async () => {
    await using watched = await tests.open('/')
    await watched.page.getByRole('button', { name: 'Create a server' }).waitFor()
    expect(await watched.page.locator('.lines li').count()).toBe(3)
  })

  test('the effects of a request appear below it live, down to the response of the receiver', async () => {
    await using watched = await tests.open('/')
    const { page, problems } = watched
    const url = `${tests.berth.info.base_url}/_berth/inbox/river`
    await tests.berth.call('POST', '/webhooks', { url, events: ['task.completed'] })
    const serverId = await tests.berth.server({ task: 'river' })
    const task = await tests.berth.call('POST', `/servers/${serverId}/tasks`, { goal: 'a goal to see' })
    await river(page).locator('.level-3').getByText('delivered').waitFor()
    await river(page).locator('.level-1').getByText('task a goal to see').waitFor()
    // The newest thing with all that it caused is at the top.
    const rows = await river(page)
      .locator('.entry')
      .evaluateAll((all) =>
        all.map((one) => [one.className.match(/level-(\d)/)?.[1], one.querySelector('.text')?.textContent]),
      )
    const first = rows.slice(0, 5).map(([level, text]) => `${level} ${text}`)
    expect(first[0]).toContain('0 POST /servers/')
    expect(first[1]).toBe('1 task a goal to see')
    expect(first.join('\n')).toContain('2 event task.completed')
    expect(first.join('\n')).toContain(`3 delivery ${url}`)
    await river(page).getByRole('link', { name: '/tasks' }).first().click()
    await page
      .getByRole('complementary', { name: 'The request' })
      .getByText(task.body.task_id)
      .first()
      .waitFor()
    await page.getByText('What it caused').waitFor()
    expect(problems).toEqual([])
  })

  test('a delivery that fails again and again is one row, which says how often, why, and when it is tried next', async () => {
    const { berth } = tests
    const { body: hook } = await berth.call('POST', '/webhooks', {
      url: `${berth.info.base_url}/_berth/inbox/dead?respond=503`,
      events: ['task.failed'],
    })
    const serverId = await berth.server()
    await berth.call('POST', `/servers/${serverId}/tasks`, { goal: 'fail: on purpose' })
    const find = async () => {
      const { deliveries } = (await berth.control('GET', '/deliveries')).body
      return deliveries.find((one: { webhook_id: string }) => one.webhook_id === hook.id)
    }
    await until(async () => (await find())?.attempts.length === 1, 'the first attempt')
    const delivery = await find()
    await berth.control('POST', '/clock', { advance: '5m' })
    await berth.control('GET', `/wait?delivery=${delivery.id}&attempts=3&timeout_ms=10000`)
    await using watched = await tests.open('/')
    const { page, problems } = watched
    const row = river(page).locator('.entry', { hasText: 'inbox/dead' })
    await row.getByText(/^3 attempts, next in /).waitFor()
    expect(await row.count()).toBe(1)
    // Why what it came of is at the top.
    await river(page)
      .locator('.entry.level-0')
      .first()
      .getByText(/^last at /)
      .waitFor()
    expect(await row.textContent()).toContain('503')
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/timeline.png` })
    await berth.control('POST', '/clock', { reset: true })
    await berth.call('DELETE', `/webhooks/${hook.id}`)
    expect(problems).toEqual([])
  })

  test('what the agent does is shown below its task, while it does it, once asked for', async () => {
    const serverId = await tests.berth.server({ task: 'folded' })
    const goal = 'run: echo a step\nask: Which one?'
    const task = await tests.berth.call('POST', `/servers/${serverId}/tasks`, { goal })
    await using watched = await tests.open(`/?server=${serverId}`)
    const { page, problems } = watched
    const step = river(page).locator('.level-2').getByText('$ echo a step')
    await river(page).getByText('awaiting input').waitFor()
    expect(await step.count()).toBe(0)
    await page.getByRole('button', { name: 'What the agent did' }).click()
    await step.waitFor()
    await river(page).locator('.level-2').getByText('Which one?').waitFor()
    const input = `/servers/${serverId}/tasks/${task.body.task_id}/input`
    await tests.berth.call('POST', input, { answer: 'the first' })
    await river(page).locator('.level-2').getByText('the first').first().waitFor()
    // Each row is indented by its level, whichever entry its element showed before.
    const indents = (await page.evaluate(
      `[...document.querySelectorAll('.entry')].map((one) => [
        Number(/level-(\\d)/.exec(one.className)[1]),
        parseFloat(getComputedStyle(one.querySelector('.what')).paddingLeft),
      ])`,
    )) as [number, number][]
    const [, unit = 0] = indents.find(([level]) => level === 1) ?? []
    expect(indents).toEqual(indents.map(([level]) => [level, level * unit]))
    await page.getByRole('button', { name: 'What the agent did' }).click()
    await step.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('filters of the address are applied', async () => {
    await tests.berth.call('GET', '/servers')
    await tests.berth.call('GET', '/tasks?unknown=1')
    await tests.berth.call('GET', '/servers/srv_nothing')
    await tests.berth.server({ task: 'of the timeline' })
    await using watched = await tests.open('/')
    const { page } = watched
    await river(page).getByText('GET /servers/srv_nothing').waitFor()
    expect(await river(page).getByText('GET /tasks?unknown=1').count()).toBe(0)
    await page.getByRole('combobox', { name: 'Kind' }).selectOption('all')
    await river(page).getByText('GET /tasks?unknown=1').waitFor()
    await page.getByRole('checkbox', { name: 'Errors only' }).check()
    await river(page).getByText('GET /tasks?unknown=1').waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('?kind=all&errors=1')
    await page.goto(`${tests.berth.info.base_url}/?q=of+the+timeline`)
    await river(page).getByText('server of the timeline').waitFor()
    expect(await river(page).locator('.level-0').count()).toBe(1)
  })

  test('a mark parts what happened since, and only that is exported', async () => {
    await tests.berth.server({ task: 'before the mark' })
    await using watched = await tests.open('/?q=the+mark')
    const { page } = watched
    await river(page).getByText('server before the mark').waitFor()
    await page.getByRole('button', { name: 'Mark from here' }).click()
    await river(page).getByText('marked at').waitFor()
    await tests.berth.server({ task: 'after the mark' })
    // Below its request, which comes by another stream.
    await river(page).locator('.level-1').getByText('server after the mark').waitFor()
    const exported = async (label: string): Promise<string> => {
      await page.getByRole('button', { name: 'Export' }).click()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('menuitem', { name: label }).click(),
      ])
      return Bun.file(await download.path()).text()
    }
    const lines = (await exported('Export as JSON Lines'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines[0]).toMatchObject({ kind: 'request', value: { operation: 'servers.create' } })
    expect(lines.find(({ kind }) => kind === 'server')).toMatchObject({
      cause: lines[0].key,
      value: { name: 'after the mark' },
    })
    const har = JSON.parse(await exported('Export the requests as HAR'))
    expect(har.log.entries).toHaveLength(1)
    expect(har.log.entries[0].request).toMatchObject({
      method: 'POST',
      postData: { text: '{"task":"after the mark"}' },
    })
  })

  test('a session without the right to the control API sees its own servers, and no requests', async () => {
    const account = await tests.berth.control('POST', '/accounts', { label: 'second' })
    const link = await tests.berth.control('POST', '/sign-in-links', {
      account_id: account.body.id,
      return_to: '/',
    })
    await tests.berth.server({ task: 'of the first account' })
    await using watched = await tests.open('/')
    const { page, problems } = watched
    // Leaves first: what the page still loads would be refused without its session.
    await page.goto('about:blank')
    await page.context().clearCookies()
    await page.goto(link.body.url)
    await page.getByRole('button', { name: 'Create a server' }).waitFor()
    await tests.berth.call(
      'POST',
      '/servers',
      { task: 'of the second' },
      { authorization: `Bearer ${account.body.api_key}` },
    )
    await river(page).getByText('server of the second').waitFor()
    expect(await page.getByText('of the first account').count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Requests' }).count()).toBe(0)
    expect(problems).toEqual([])
  })

  test('the timeline hinders nobody and fits, in every look', async () => {
    const name = '<b>bold</b> \u202eevil שלום 🚢 '.repeat(4)
    await tests.berth.call('POST', '/servers', { task: name })
    await using watched = await tests.open('/?since=2020-01-01T00:00:00Z', NARROW)
    const { page } = watched
    await river(page).locator('.text', { hasText: '🚢' }).first().waitFor()
    expect(await page.locator('#main b').count()).toBe(0)
    expect(await faultsInAnyLook(page)).toEqual([])
  })
})
