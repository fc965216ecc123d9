import { describe, expect, test } from 'bun:test'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, live, NARROW, showScreen } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('webhooks on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests({ 'allow-local-webhooks': true })

  test('an inbox is subscribed, refuses at first, and is delivered to when the clock is moved to the next try', async () => {
    const { berth } = tests
    // The next try waits for the person.
    await berth.control('POST', '/clock', { freeze: true })
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Subscribe' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill(`${berth.info.base_url}/_berth/inbox/orders?respond=503,200`)
    for (const name of ['task.failed', 'task.completed']) await dialog.getByLabel(name).check()
    await dialog.getByRole('button', { name: 'Subscribe' }).click()
    const shown = page.getByRole('dialog', { name: "The webhook's secret" })
    expect(await shown.locator('.line code').textContent()).toStartWith('whsec_')
    await shown.getByRole('button', { name: 'Done' }).click()
    const { body } = await berth.call('GET', '/webhooks')
    expect(body.webhooks[0].events).toEqual(['task.completed', 'task.failed'])

    await page.getByRole('button', { name: /Send an event/ }).click()
    await dialog.getByLabel('Event').selectOption('task.failed')
    await dialog.getByLabel('result').fill('The disk is full.')
    await dialog.getByText('The same from a terminal').click()
    await dialog.getByText(/^berth trigger task\.failed --payload '.*The disk is full/).waitFor()
    await dialog.getByRole('button', { name: 'Send' }).click()
    const delivery = page.locator('.deliveries > li', { hasText: 'task.failed' })
    await delivery.getByText(/^next try in [^·]+ · 1 attempt · /).waitFor()
    const reason = page
      .getByText('The receiver answered with 503.', { exact: true })
      .filter({ visible: true })
    await reason.waitFor()
    await delivery.locator('summary').first().click()
    await delivery.getByText('503', { exact: true }).click()
    await delivery
      .locator('.attempts')
      .getByText('The receiver answered with 503.', { exact: true })
      .waitFor()
    await delivery.getByText('"The disk is full."').waitFor()
    await delivery.getByText('Headers of the request').click()
    await delivery.getByRole('row', { name: 'webhook-signature v1,' }).waitFor()
    await delivery.getByText('Headers of the response').click()
    await delivery.getByRole('row', { name: 'content-type application/json' }).nth(1).waitFor()
    const card = page.locator('.card', { hasText: 'respond=503,200' })
    await card.getByText('1 waiting for the next try').waitFor()

    await delivery.getByRole('button', { name: 'Move the clock to the next try' }).click()
    await delivery.getByText('delivered', { exact: true }).waitFor()
    await card.getByText('100 % of 1 delivered').waitFor()
    expect(await delivery.getByRole('button', { name: 'Move the clock to the next try' }).count()).toBe(0)
    // It can be sent again at any time.
    await delivery.getByRole('button', { name: 'Send again' }).click()
    await delivery.getByText('3 attempts').waitFor()
    const search = page.getByLabel('Search deliveries')
    await search.fill('TASK.FAILED')
    await delivery.waitFor()
    await search.fill('no such thing')
    await page.getByText('No delivery fits the filters.').waitFor()
    expect(await delivery.count()).toBe(0)
    await search.fill('')
    await berth.control('POST', '/clock', { reset: true })

    await page.getByRole('link', { name: 'Inboxes' }).click()
    await page.getByText('signed', { exact: true }).first().waitFor()
    await berth.fetch('/_berth/inbox/orders', {
      method: 'POST',
      body: '{"event":"task.failed"}',
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'evt_forged',
        'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
        'webhook-signature': `v1,${'A'.repeat(43)}=`,
      },
    })
    const forged = page.locator('.deliveries > li', { hasText: 'wrong signature' })
    await forged.getByText('wrong signature').click()
    await forged.locator('p.problem', { hasText: 'made for another body, id or time' }).waitFor()
    expect(problems).toEqual([])
  })

  test('deliveries are filtered by endpoint, event and state, alone and together, also from another screen', async () => {
    const { berth } = tests
    const subscribe = async (inbox: string): Promise<string> =>
      (await berth.call('POST', '/webhooks', { url: `${berth.info.base_url}/_berth/inbox/${inbox}` })).body.id
    const [good, bad] = [await subscribe('good'), await subscribe('bad?respond=503')]
    const events: string[] = []
    for (const event of ['project.ready', 'quota.threshold']) {
      const { body } = await berth.control('POST', '/events', { event })
      events.push(body.id)
      await berth.control('GET', `/wait?deliveries=${body.id}`)
    }
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    const shown = page.locator('.deliveries > li')
    const chosen = async (filters: Record<string, string>, rows: readonly string[]): Promise<void> => {
      for (const [label, choice] of Object.entries(filters))
        await page.getByLabel(label, { exact: true }).selectOption(choice)
      await until(async () => {
        const summaries = await shown.locator('summary:has(> .state)').allTextContents()
        return (
          summaries.length === rows.length && summaries.every((text, at) => text.includes(rows[at] ?? 'none'))
        )
      }, `the list has ${rows.length} deliveries`)
    }
    await chosen({ Endpoint: bad }, ['quota.threshold', 'project.ready'])
    await chosen({ Event: 'project.ready' }, ['project.ready'])
    await chosen({ State: 'delivered' }, [])
    await page.getByText('No delivery fits the filters.').waitFor()
    await chosen({ Endpoint: good }, ['project.ready'])
    expect(new URL(page.url()).searchParams.toString()).toBe(
      new URLSearchParams({ webhook: good, event: 'project.ready', status: 'delivered' }).toString(),
    )
    await page.reload()
    await chosen({}, ['project.ready'])
    expect(await faultsInAnyLook(page)).toEqual([])
    // What the card says of its deliveries leads to them, and an event of the timeline to its own.
    await page.locator('.card', { hasText: 'inbox/bad' }).getByRole('link', { name: 'waiting' }).click()
    await chosen({}, ['quota.threshold', 'project.ready'])
    await showScreen(page, '/')
    await page.getByRole('link', { name: /event quota\.threshold/ }).click()
    await page.waitForURL(`**/dashboard/webhooks?event_id=${events[1]}`)
    await chosen({}, ['quota.threshold', 'quota.threshold'])
    for (const id of [good, bad]) await berth.call('DELETE', `/webhooks/${id}`)
    expect(problems).toEqual([])
  })

  test('the clock is not moved to the next try without a question if the session ends on the way', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/webhooks')
    const { page } = watched
    const clock = async (body: object) => Date.parse((await berth.control('POST', '/clock', body)).body.now)
    const [session] = (await berth.call('GET', '/browsers')).body.browsers
    const end = Date.parse(session.created_at) + 30 * 86_400_000
    // Used in time, it lasts until its age ends it. A frozen clock waits for the test.
    for (let now = await clock({ freeze: true }); now < end - 1_000; ) {
      now = await clock({ set: new Date(Math.min(now + 6 * 86_400_000, end - 1_000)).toISOString() })
      await page.reload()
      await live(page)
    }
    await berth.call('POST', '/webhooks', { url: `${berth.info.base_url}/_berth/inbox/late?respond=503,200` })
    await berth.control('POST', '/events', { event: 'task.created' })
    const delivery = page.locator('.deliveries > li', { hasText: 'inbox/late' })
    await delivery.locator('summary').first().click()
    await delivery.getByRole('button', { name: 'Move the clock to the next try' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText("This browser's session ends on the way", { exact: false }).waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await clock({ freeze: true })).toBe(end - 1_000)
    await delivery.getByRole('button', { name: 'Move the clock to the next try' }).click()
    await dialog.getByRole('button', { name: 'Move the clock' }).click()
    await page.waitForURL(/signin/)
    await clock({ reset: true })
  })

  test('a webhook that its receiver switched off says so, and is switched on again', async () => {
    const { berth } = tests
    const url = `${berth.info.base_url}/_berth/inbox/gone?respond=410,200`
    const { body } = await berth.call('POST', '/webhooks', { url, events: ['tuning.completed'] })
    await berth.control('POST', '/events', { event: 'tuning.completed' })
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    const card = page.locator('.card', { hasText: 'inbox/gone' })
    await card.getByText(/^Switched off .*: the receiver answered with 410/).waitFor()
    await page.locator('.deliveries > li', { hasText: 'inbox/gone' }).getByText('disabled').waitFor()
    await card.getByRole('button', { name: 'Switch on' }).click()
    await card.getByText(/^Switched off/).waitFor({ state: 'detached' })
    expect((await berth.call('GET', '/webhooks')).body.webhooks).toContainEqual(
      expect.objectContaining({ id: body.id, disabled_at: null }),
    )
    await berth.call('DELETE', `/webhooks/${body.id}`)
    expect(problems).toEqual([])
  })

  test('each event has the form of its schema: lists, numbers and what may be missing', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/webhooks')
    const { page } = watched
    const dialog = page.getByRole('dialog', { name: 'Send an event' })
    const send = async (event: string, values: Record<string, string>): Promise<void> => {
      await page.getByRole('button', { name: /Send an event/ }).click()
      await dialog.getByLabel('Event').selectOption(event)
      for (const [name, value] of Object.entries(values)) await dialog.getByLabel(name).fill(value)
      await dialog.getByRole('button', { name: 'Send' }).click()
    }
    const last = async () => (await berth.control('GET', '/events?limit=1')).body.events[0]
    await send('project.secrets_required', { keys: 'A_KEY\nANOTHER' })
    await page.getByText('project.secrets_required was emitted.').waitFor()
    expect((await last()).data).toMatchObject({ keys: ['A_KEY', 'ANOTHER'] })
    await send('project.ready', { url: '' })
    await page.getByText('project.ready was emitted.').waitFor()
    expect((await last()).data.url).toBeNull()
    await send('project.init_failed', { log: '' })
    await page.getByText('project.init_failed was emitted.').waitFor()
    expect((await last()).data).not.toHaveProperty('log')
    await send('quota.threshold', { credits_used: 'many' })
    await dialog.getByText('This is not a number.').waitFor()
    await dialog.getByLabel('credits_used').fill('12.5')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await page.getByText('quota.threshold was emitted.').waitFor()
    expect((await last()).data.credits_used).toBe(12.5)
    await page
      .locator('.notice', { hasText: 'quota.threshold' })
      .getByRole('link', { name: 'Show it' })
      .click()
    await page.locator('main').getByText('quota.threshold').first().waitFor()
    expect(new URL(page.url()).searchParams.get('q')).toBe((await last()).id)
    await page.locator('.notice').waitFor({ state: 'detached' })
  })

  test('the next deliveries to a webhook fail by a fault, once, whatever its receiver says', async () => {
    const { berth } = tests
    await using watched = await tests.open('/dashboard/webhooks')
    const { page, problems } = watched
    const url = `${berth.info.base_url}/_berth/inbox/struck`
    const { body } = await berth.call('POST', '/webhooks', { url, events: ['server.deleted'] })
    const card = page.locator('.card', { hasText: 'inbox/struck' })
    await card.getByRole('button', { name: /Fail the next/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Fail the next deliveries' })
    expect(await dialog.getByText('Compute fails').count()).toBe(0)
    expect(await dialog.getByLabel('503 unavailable').isChecked()).toBe(true)
    await dialog.getByText('The same from a terminal').click()
    await dialog.getByText(`berth faults add --webhook ${body.id} --error 503 --times 1`).waitFor()
    expect(await hindrances(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Set the fault' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('A fault is set: deliveries of webhooks that match fail on purpose.').waitFor()
    await berth.control('POST', '/events', { event: 'server.deleted' })
    await page
      .locator('.deliveries summary')
      .getByText(/The fault flt_\w+, which a test has set, answered with 503/)
      .first()
      .waitFor()
    await page.getByRole('link', { name: 'Test controls' }).click()
    const fault = page.locator('.card', { hasText: `deliveries to ${body.id}` })
    await fault.getByRole('link', { name: 'Applied once' }).click()
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor()
    expect(problems).toEqual([])
    await berth.control('DELETE', '/faults')
    await berth.call('DELETE', `/webhooks/${body.id}`)
  })

  test('what the instance refuses is said before, and is admitted without a restart, in every window', async () => {
    const { berth } = tests
    await berth.control('PATCH', '/local-webhooks', { allowed: false })
    await using watched = await tests.open('/dashboard/webhooks')
    await using other = await tests.open('/dashboard/webhooks')
    const admit = { name: 'Admit local webhooks until the next start' }
    for (const { page } of [watched, other]) {
      await page.getByRole('button', { name: 'Subscribe' }).click()
      await page.getByRole('button', admit).waitFor()
      expect(await hindrances(page)).toEqual([])
    }
    const { page } = watched
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill('https://example.com/hook')
    await page.getByRole('button', admit).waitFor({ state: 'detached' })
    await dialog.getByLabel('Address').fill(`${berth.info.base_url}/_berth/inbox/admitted`)
    await dialog.getByRole('button', { name: 'Subscribe' }).click()
    await dialog.getByText(/berth webhooks local on/).waitFor()
    await page.getByRole('button', admit).click()
    for (const one of [watched, other])
      await one.page.getByRole('button', admit).waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.name')).toBe('url')
    await dialog.getByRole('button', { name: 'Subscribe' }).click()
    await page.getByRole('dialog', { name: "The webhook's secret" }).waitFor()
  })

  test('the screens hinder nobody and fit, in every look', async () => {
    const url = `${tests.berth.info.base_url}/_berth/inbox/looked-at`
    await tests.berth.call('POST', '/webhooks', { url })
    await tests.berth.control('POST', '/events', { event: 'task.created' })
    await using watched = await tests.open('/dashboard/webhooks', NARROW)
    const { page } = watched
    for (const [path, name] of [
      ['/dashboard/webhooks', 'Webhooks'],
      ['/dashboard/inboxes', 'Inboxes'],
    ] as const) {
      await showScreen(page, path)
      await page.getByRole('heading', { level: 1, name }).waitFor()
      await page.locator('.deliveries').first().waitFor()
      expect(await faultsInAnyLook(page)).toEqual([])
    }
  })
})
