import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserPath, hindrances } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('requests on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()
  const rows = (page: Page) => page.getByRole('region', { name: 'Requests, the newest first' }).locator('li')

  test('a person finds the request that a client got wrong, and makes a fault of it that applies', async () => {
    const serverId = await tests.berth.server({ task: 'shop' })
    await tests.berth.call('POST', `/servers/${serverId}/exec`, { comand: 'ls' })
    await using watched = await tests.open('/dashboard/requests?errors=1')
    const { page, problems } = watched
    await rows(page).getByRole('link', { name: '/exec' }).first().click()
    const detail = page.getByRole('complementary', { name: 'The request' })
    await detail.getByText('Nothing read this field. Is command meant?').waitFor()
    await detail.getByText('"bad_request"').waitFor()
    await detail.getByRole('button', { name: 'Make a fault of it' }).click()
    const dialog = page.getByRole('dialog', { name: 'Make a fault of it' })
    expect(await dialog.getByRole('radio', { name: `POST /servers/${serverId}/exec` }).isChecked()).toBe(true)
    await dialog.getByRole('radio', { name: 'all of exec.run' }).check()
    await dialog.getByRole('radio', { name: '502 bad gateway' }).check()
    await dialog.getByText('The same from a terminal').click()
    await dialog.getByText('berth faults add --operation exec.run --error 502 --times 1').waitFor()
    await dialog.getByRole('button', { name: 'Set the fault' }).click()
    await page.getByText('A fault is set: requests that match fail on purpose.').waitFor()
    const faulty = await tests.berth.call('POST', `/servers/${serverId}/exec`, { command: 'true' })
    expect(faulty.status).toBe(502)
    await rows(page).getByText('502').first().waitFor()
    await rows(page).getByRole('link', { name: '/exec' }).first().click()
    await detail.getByText('gave this response. The API did nothing.').waitFor()
    // What is sent again stands for a client: a fault that is still set would strike it.
    await detail.getByText('Headers of the request').click()
    await detail.getByRole('row', { name: 'authorization Bearer ***' }).waitFor()
    await detail.getByText('It was refused before its body was read.').waitFor()
    // It has applied as often as it may.
    await page.getByText('A fault is set').waitFor({ state: 'detached' })
    await tests.berth.control('DELETE', '/faults')
    await detail.getByText('removed since').waitFor()
    expect(problems).toEqual([])
  })

  test('a fault gives the same response as the request that it is made of, and the list distinguishes them', async () => {
    const { berth } = tests
    const refused = await berth.call('POST', '/servers', { tier: 'huge' })
    expect(refused.status).toBe(400)
    await using watched = await tests.open('/dashboard/requests?operation=servers.create&status=4xx')
    const { page } = watched
    await rows(page).first().getByRole('link').click()
    await page.getByRole('button', { name: 'Make a fault of it' }).click()
    const dialog = page.getByRole('dialog', { name: 'Make a fault of it' })
    expect(await dialog.getByRole('radio', { name: 'The same response: 400' }).isChecked()).toBe(true)
    await dialog.getByRole('button', { name: 'Set the fault' }).click()
    await dialog.waitFor({ state: 'detached' })
    const faulty = await berth.call('POST', '/servers', {})
    expect([faulty.status, faulty.body]).toEqual([400, refused.body])
    expect(faulty.headers.get('content-type')).toBe(refused.headers.get('content-type'))
    await rows(page).nth(1).waitFor()
    const given = page.getByTitle('A fault gave this response.')
    expect([await given.count(), await rows(page).first().locator(given).textContent()]).toEqual([1, 'fault'])
    await page.getByRole('link', { name: 'Timeline' }).click()
    // The newest: the fault of the test before has applied to a request, too.
    const newest = page.locator('.entry').filter({ hasText: 'servers' }).filter({ hasText: '400' }).first()
    await newest.getByTitle('A fault gave this response.').waitFor()
    await page.keyboard.press('~')
    const drawer = page.getByRole('region', { name: 'Drawer' })
    await drawer.getByTitle('A fault gave this response.').first().waitFor()
    await page.keyboard.press('Escape')
    await page.goBack()
    await given.waitFor()
    expect(await hindrances(page)).toEqual([])

    // What was refused on purpose is no less a response; one that went well is offered too, but not first.
    await berth.control('DELETE', '/faults')
    await berth.call('GET', '/templates?well')
    await page.goto(`${berth.info.base_url}/dashboard/requests?operation=templates.list&q=well`)
    await rows(page).first().getByRole('link').click()
    await page.getByRole('button', { name: 'Make a fault of it' }).click()
    expect(await dialog.getByRole('radio', { name: '500 internal error' }).isChecked()).toBe(true)
    await dialog.getByRole('radio', { name: 'The same response: 200' }).waitFor()
  })

  test('a request whose response was lost shows what was done, and its fault leads to all its requests', async () => {
    const { berth } = tests
    const lost = { match: { operation: 'servers.create' }, effect: { lose_response: true } }
    const { id } = (await berth.control('POST', '/faults', lost)).body
    await expect(berth.call('POST', '/servers', { task: 'done all the same' })).rejects.toThrow()
    await using watched = await tests.open('/dashboard/requests?operation=servers.create&q=201')
    const { page } = watched
    await rows(page).first().getByRole('link').click()
    const detail = page.getByRole('complementary', { name: 'The request' })
    await detail.getByText('lost the response. All was done, but the client has none of it.').waitFor()
    await detail.getByRole('region', { name: 'What it caused' }).getByText('server.created').waitFor()
    await detail.getByRole('link', { name: id }).click()
    const card = page.locator('.card.current', { hasText: 'Lost response' })
    await card.getByRole('link', { name: 'Applied once' }).click()
    await rows(page).first().waitFor()
    expect(await rows(page).locator('.operation').allInnerTexts()).toEqual(['servers.create'])
    await berth.control('DELETE', '/faults')
  })

  test('what is sent again meets faults, as the request of a client does, and the dashboard does not', async () => {
    await tests.berth.call('GET', '/templates?again')
    const effect = { error: { status: 503 } }
    await tests.berth.control('POST', '/faults', { match: {}, effect })
    await using watched = await tests.open('/dashboard/requests?operation=templates.list&q=again')
    const { page } = watched
    await rows(page).first().getByRole('link').click()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByText('Sent again: 503.').waitFor()
    await page.getByText('gave this response. The API did nothing.').waitFor()
    await page.getByRole('button', { name: 'Remove all' }).click()
    await page.getByText('A fault is set').waitFor({ state: 'detached' })
  })

  test('filters of the address are applied, and the own requests of clients of berth are hidden', async () => {
    const serverId = await tests.berth.server({ task: 'filtered' })
    await tests.berth.call('GET', `/servers/${serverId}`)
    await tests.berth.call('GET', '/servers/srv_nothing')
    await tests.berth.call('GET', '/keys', undefined, { 'x-berth-client': 'cli' })
    await using watched = await tests.open(`/dashboard/requests?server=${serverId}`)
    const { page } = watched
    const shown = (): Promise<string[]> => rows(page).locator('.operation').allInnerTexts()
    await rows(page).first().waitFor()
    expect((await shown()).toSorted()).toEqual(['servers.create', 'servers.get'])
    await page.goto(`${tests.berth.info.base_url}/dashboard/requests?operation=servers.get&status=4xx`)
    await rows(page).getByRole('link', { name: 'srv_nothing' }).waitFor()
    expect(new Set(await shown())).toEqual(new Set(['servers.get']))
    expect(new Set(await rows(page).locator('.status').allInnerTexts())).toEqual(new Set(['404']))
    await page.goto(`${tests.berth.info.base_url}/dashboard/requests?operation=keys.list`)
    await page.getByText('No request fits the filters').waitFor()
    await page.getByRole('checkbox', { name: "berth's own clients" }).check()
    await rows(page).getByText('cli').first().waitFor()
    expect(page.url()).toEndWith('?operation=keys.list&own=1')
  })

  test('errors are grouped by operation and code, and a group leads to its requests', async () => {
    for (let count = 0; count < 3; count += 1) await tests.berth.call('GET', '/projects/prj_not_there')
    await using watched = await tests.open('/dashboard/requests?group=errors')
    const { page } = watched
    await page
      .locator('li')
      .filter({ hasText: '3×' })
      .getByRole('link', { name: 'projects.get not_found' })
      .click()
    await rows(page).nth(2).waitFor()
    expect(await rows(page).locator('.operation').allInnerTexts()).toEqual(Array(3).fill('projects.get'))
    await page.getByRole('link', { name: 'Errors by cause' }).click()
    await tests.berth.call('GET', '/projects/prj_not_there')
    await page.locator('li').filter({ hasText: '4×' }).getByText('projects.get').waitFor()
    await page.goto(
      `${tests.berth.info.base_url}/dashboard/requests?group=errors&operation=projects.get&status=5xx`,
    )
    await page.getByText('No errors').waitFor()
  })

  test('sent again, a request that changes something is asked about first, and the page goes to the new one', async () => {
    await tests.berth.call('POST', '/servers', { task: 'sent twice' })
    await using watched = await tests.open('/dashboard/requests?operation=servers.create')
    const { page } = watched
    await rows(page).first().getByRole('link').click()
    const before = page.url()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Sent again: 201.').waitFor()
    await page.getByText('from a browser').waitFor()
    expect(page.url()).not.toBe(before)
    const { body } = await tests.berth.call('GET', '/servers')
    expect(body.servers.filter(({ task }: { task: string }) => task === 'sent twice')).toHaveLength(2)
  })

  test('a request is copied as curl, as fetch and as a test that passes', async () => {
    await tests.berth.call('POST', '/servers', { task: "it's copied" })
    await using watched = await tests.open('/dashboard/requests?q=servers.create', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { page } = watched
    await rows(page).first().getByRole('link').click()
    const copied = async (label: string): Promise<string> => {
      await page.getByRole('button', { name: 'Copy', exact: true }).click()
      await page.getByRole('menuitem', { name: label }).click()
      await page.getByText(`Copied as ${label.replace('Copy as ', '')}.`).waitFor()
      return page.evaluate('navigator.clipboard.readText()')
    }
    expect(await copied('Copy as curl')).toContain(`-d '{"task":"it'\\''s copied"}'`)
    expect(await copied('Copy as fetch')).toContain('body: JSON.stringify({')
    const code = await copied('Copy as a test')
    expect(code).toContain('expect(response.status).toBe(201)')
    expect(code).not.toContain('sk_live_')
  })

  test('while the list is scrolled it stays, says how much is new, and a key sets it going', async () => {
    for (let count = 0; count < 60; count += 1) await tests.berth.call('GET', `/templates?n=${count}`)
    await using watched = await tests.open('/dashboard/requests?operation=templates.list')
    const { page } = watched
    await rows(page).getByRole('link', { name: '?n=59' }).waitFor()
    await page.getByRole('region', { name: 'Requests, the newest first' }).hover()
    await page.mouse.wheel(0, 400)
    await page.getByRole('button', { name: 'Paused · 0 new' }).waitFor()
    await tests.berth.call('GET', '/templates?n=later')
    await page.getByRole('button', { name: 'Paused · 1 new' }).waitFor()
    expect(await rows(page).getByRole('link', { name: '?n=later' }).count()).toBe(0)
    await page.keyboard.press('p')
    await rows(page).first().getByRole('link', { name: '?n=later' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.getByRole('complementary').getByText('/templates?n=59', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('complementary').waitFor({ state: 'detached' })
  })

  test('what a client sent becomes no markup', async () => {
    const hostile =
      '<img src=x onerror="document.title=1"><script>document.title=2</script> \u202eevil שלום 🚢'
    await tests.berth.call('POST', `/servers?q=${encodeURIComponent(hostile)}`, {
      task: hostile,
      [hostile]: [hostile],
    })
    await using watched = await tests.open(`/dashboard/requests?operation=servers.create&q=onerror`)
    const { page, problems } = watched
    await rows(page).first().getByRole('link').click()
    const detail = page.getByRole('complementary')
    await detail.getByText('Nothing read this field', { exact: false }).first().waitFor()
    expect(await detail.locator('.json .json-string').first().textContent()).toContain('<img src=x')
    expect(await page.locator('#main :is(img, script)').count()).toBe(0)
    expect(await page.title()).toBe('Requests · berth')
    expect(problems).toEqual([])
  })

  test('the screen hinders nobody and fits, in every look', async () => {
    await tests.berth.call('POST', '/servers', { task: 'x'.repeat(5_000), [`long${'g'.repeat(300)}`]: 1 })
    await using watched = await tests.open('/dashboard/requests', NARROW)
    const { page } = watched
    const fits = async (): Promise<void> => expect(await faultsInAnyLook(page)).toEqual([])
    await rows(page).getByRole('link', { name: '/servers' }).first().waitFor()
    await fits()
    await rows(page).getByRole('link', { name: '/servers' }).first().click()
    await page.getByText('more characters').first().waitFor()
    await fits()
    await page.getByRole('button', { name: 'Make a fault of it' }).click()
    await fits()
    await page.keyboard.press('Escape')
    await page.goto(`${tests.berth.info.base_url}/dashboard/requests?group=errors`)
    await page.getByRole('heading', { name: 'Requests' }).waitFor()
    await fits()
  })
})
