import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, showScreen } from '../support/dashboard.ts'
import { accessToken, registerClient } from '../support/oauth.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** Markup that would load something, run a script and link to one, if a page took it as markup. */
const MARKUP =
  '<img src=x onerror="document.title=1"><script>document.title=2</script><a href="javascript:1">'

/** Counts the marks in an element, once it is laid out. */
const COUNT_MARKS = (element: { offsetHeight: number; textContent: string | null }): number =>
  element.offsetHeight > 0 ? [...(element.textContent ?? '').matchAll(/\u0301/g)].length : 0

/** A label has 40 characters at most. */
const SHORT = '<img src=x onerror=document.title=1>'

describe.skipIf(browserPath === null)('content of others on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests({ 'allow-local-webhooks': true })

  test('markup in names, bodies, errors and output is text on every screen that shows it', async () => {
    const { berth } = tests
    const server = await berth.server({ task: MARKUP })
    await berth.call('POST', '/keys', { label: SHORT })
    await berth.control('POST', '/accounts', { label: SHORT })
    await berth.control('PUT', '/scenarios', {
      scenarios: [{ name: MARKUP, match: MARKUP, steps: [{ say: MARKUP }] }],
    })
    await accessToken(berth, {
      client: await registerClient(berth.info.base_url, { client_name: MARKUP }),
    })
    // A receiver that refuses with markup, and an inbox that got some.
    using receiver = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => new Response(MARKUP, { status: 500, headers: { 'x-markup': MARKUP } }),
    })
    await berth.call('POST', '/webhooks', { url: `http://127.0.0.1:${receiver.port}/?${encodeURI(MARKUP)}` })
    const data = { task_id: MARKUP, server_id: server, status: 'failed', result: MARKUP }
    await berth.control('POST', '/events', { event: 'task.failed', data })
    await berth.fetch('/_berth/inbox/markup', {
      method: 'POST',
      body: JSON.stringify({ event: MARKUP, data: [MARKUP] }),
      headers: { 'content-type': 'application/json', 'x-markup': MARKUP },
    })
    const { body } = await berth.call('POST', `/servers/${server}/tasks`, { goal: MARKUP })
    await berth.call('POST', `/servers/${server}/exec`, { command: `echo '${MARKUP}'; exit 3` })
    const titled = '\\033]0;%s\\007\\033]8;;javascript:document.title=3\\033\\\\link\\033]8;;\\033\\\\ %s\\n'
    await berth.call('POST', `/servers/${server}/terminals`, {
      command: `printf '${titled}' '${MARKUP}' '${MARKUP}'; cat`,
      name: 'markup',
    })

    await using watched = await tests.open('/', {
      userAgent: `${SHORT.replaceAll(' ', '+')} Chrome/1`,
    })
    const { page, problems } = watched
    const screens: readonly (readonly [string, string])[] = [
      ['/', '<img src=x'],
      ['/dashboard/requests?own=1', '/exec'],
      ['/dashboard/servers', '<img src=x'],
      [`/dashboard/servers/${server}/terminal`, '<img src=x'],
      [`/dashboard/servers/${server}/tasks`, '<img src=x'],
      ['/dashboard/tasks', '<img src=x'],
      [`/dashboard/tasks/${body.task_id}`, '<img src=x'],
      ['/dashboard/webhooks', 'task.failed'],
      ['/dashboard/inboxes?inbox=markup', '<img src=x'],
      ['/dashboard/controls', '<img src=x'],
      ['/dashboard/access', '<img src=x'],
      ['/dashboard/usage', '<img src=x'],
    ]
    for (const [path, text] of screens) {
      await page.goto(`${berth.info.base_url}${path}`)
      await page.getByText(text).filter({ visible: true }).first().waitFor()
      // What is folded is drawn too.
      for (const _ of ['what is folded', 'what is folded inside it'])
        await page.evaluate(
          `for (const one of document.querySelectorAll('main details:not([open]) > summary')) one.click()`,
        )
      expect([path, await page.locator('img[src="x"], a[href^="javascript"], main script').count()]).toEqual([
        path,
        0,
      ])
      expect(await page.title()).toEndWith('berth')
    }
    expect(problems).toEqual([])
  })

  test('a response of a receiver that is nested deeply breaks no screen, and is shown as a text', async () => {
    const { berth } = tests
    const nested = '['.repeat(500) + ']'.repeat(500)
    using receiver = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(nested) })
    const events = ['task.completed']
    const { href: url } = receiver.url
    await berth.call('POST', '/webhooks', { url, events })
    const data = { task_id: 'task', server_id: 'server', status: 'completed', result: 'done' }
    await berth.control('POST', '/events', { event: 'task.completed', data })
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    const delivery = page.locator('.deliveries > li', { hasText: url })
    await delivery.getByText('delivered', { exact: true }).waitFor()
    await delivery.locator('summary').first().click()
    await delivery.getByText('Attempt 1').click()
    await delivery.getByText(nested, { exact: true }).waitFor()
    expect(problems).toEqual([])
  })

  test('a character with marks without end holds up no screen: transcript, output of a command, inbox', async () => {
    const { berth } = tests
    const piled = `x${'\u0301'.repeat(150_000)}`
    const server = await berth.server()
    await berth.call('PUT', `/servers/${server}/files`, { path: 'piled', content: piled })
    const { body } = await berth.call('POST', `/servers/${server}/tasks`, {
      goal: 'run: cat piled\ncomplete: Read.',
    })
    await berth.fetch('/_berth/inbox/piled', { method: 'POST', body: piled })
    await using watched = await tests.open(`/dashboard/tasks/${body.task_id}`)
    const { page, problems } = watched
    await page.getByText('Read.', { exact: true }).waitFor()
    await page.getByText('$ cat piled').click()
    const marks = (place: string): Promise<number> => page.locator(place).evaluate(COUNT_MARKS)
    expect(await marks('.tool pre')).toBeWithin(16, 100)
    await showScreen(page, `/dashboard/servers/${server}/commands`)
    await page.locator('.command-line input').fill('cat piled')
    await page.keyboard.press('Enter')
    await page.getByRole('article', { name: 'Command cat piled' }).getByText('exit 0').waitFor()
    expect(await marks('.run pre')).toBe(16)
    await showScreen(page, '/dashboard/inboxes?inbox=piled')
    await page.getByText('a request').click()
    expect(await marks('.deliveries pre')).toBe(16)
    expect(problems).toEqual([])
  })

  test('a file of Markdown whose paragraph has no end holds up no screen', async () => {
    const { berth } = tests
    const server = await berth.server()
    for (const [path, content] of [
      ['endless.md', '*a'.repeat(250_000)],
      ['short.md', '# Short'],
    ])
      await berth.call('PUT', `/servers/${server}/files`, { path, content })
    await using watched = await tests.open(`/dashboard/servers/${server}/files?file=endless.md`)
    const { page, problems } = watched
    await page.locator('.cm-line').first().waitFor()
    await page.getByRole('button', { name: 'short.md' }).click()
    // It is coloured after the other one was to be.
    await page.locator('.cm-line span', { hasText: 'Short' }).waitFor()
    expect(problems).toEqual([])
  })

  test('a screen that cannot draw what a response contains says so, and the others stay usable', async () => {
    const { berth } = tests
    const { body: fault } = await berth.control('POST', '/faults', {
      match: { operation: 'webhooks.list', client: 'dashboard' },
      effect: {
        respond: { status: 200, content_type: 'application/json', body: '{"webhooks":[{"id":"wh_1"}]}' },
      },
    })
    await using watched = await tests.open('/dashboard/webhooks')
    const { page } = watched
    await page.getByRole('alert').getByText('This screen could not be drawn').waitFor()
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    await page.goBack()
    await berth.control('DELETE', `/faults/${fault.id}`)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })
})
