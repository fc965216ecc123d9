import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW, showScreen } from '../support/dashboard.ts'

/** Returns an archive of files, in base64. */
const archive = async (files: Record<string, string>): Promise<string> =>
  Buffer.from(await new Bun.Archive(files).bytes()).toString('base64')

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('projects on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('an app from a template is brought up, broken in the editor, understood by its log, and fixed', async () => {
    await using watched = await tests.open('/dashboard/projects', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { page, problems } = watched
    await page.getByRole('button', { name: 'Create a project' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('combobox', { name: 'Template' }).selectOption('bun-api')
    await dialog.getByLabel('Name').fill('Counter')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page.locator('.state').getByText('running').waitFor()
    const url = String(await page.getByRole('link', { name: 'Open' }).getAttribute('href'))
    expect((await fetch(url)).status).toBeLessThan(500)
    // The ports that its log names are those inside the server.
    await page.getByRole('link', { name: url, exact: true }).waitFor()
    await page.getByRole('button', { name: 'Copy the address' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(url)

    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('button', { name: 'src', exact: true }).click()
    await page.getByRole('button', { name: 'server.ts' }).click()
    const editor = page.getByRole('textbox', { name: /Content of .*server\.ts/ })
    await editor.click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.type("throw new Error('broken on purpose')\n")
    await page.keyboard.press('Control+s')
    await page.locator('.file-view').getByText('edited').waitFor({ state: 'detached' })
    // The app runs the code of before until somebody restarts it.
    await page.locator('.file-view').getByText('Saved').waitFor()
    await page.getByRole('button', { name: 'Restart Counter' }).waitFor()
    await page.getByRole('heading', { level: 1, name: 'Counter' }).waitFor()
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.locator('.log-text').first().waitFor()

    const menu = page.getByRole('button', { name: 'Actions on Counter' })
    await page.getByRole('link', { name: 'Projects' }).first().click()
    await page.locator('.row-link').getByText('Counter').click()
    await menu.click()
    await page.getByRole('menuitem', { name: 'Restart the app' }).click()
    await page.locator('.log-text').getByText('broken on purpose').first().waitFor()

    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('button', { name: 'src', exact: true }).click()
    await page.getByRole('button', { name: 'server.ts' }).click()
    await editor.click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.press('Shift+ArrowDown')
    await page.keyboard.press('Delete')
    await page.keyboard.press('Control+s')
    await page.locator('.file-view').getByText('edited').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Restart Counter' }).click()
    await page.getByText('Counter is restarted.').waitFor()
    await page.locator('.state').getByText('running').waitFor()
    expect((await fetch(url)).status).toBeLessThan(500)
    expect(problems).toEqual([])
  })

  test('an app that waits for variables asks for them by name, and comes up with what is typed', async () => {
    const { berth } = tests
    const serverId = await berth.server()
    const { body: project } = await berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Asking',
      visibility: 'public',
      source: {
        type: 'archive',
        data: await archive({
          'index.ts': 'Bun.serve({ port: process.env.PORT, fetch: () => new Response(process.env.TOKEN) })',
          'berth.json': JSON.stringify({
            env: {
              TOKEN: { required: true, description: 'From <b>your</b> account' },
              MODE: { default: 'dry' },
            },
          }),
        }),
      },
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}`)
    const { page, problems } = watched
    const form = page.getByRole('form', { name: 'Missing variables' })
    await form.getByText('From <b>your</b> account').waitFor()
    await form.getByText('1 more that it can do without').click()
    expect(await form.getByLabel('MODE').getAttribute('placeholder')).toBe('dry by default')
    await form.getByLabel('TOKEN').fill('typed by a person')
    await form.getByRole('button', { name: 'Save and go on' }).click()
    await page.locator('.state').getByText('running').waitFor()
    await form.waitFor({ state: 'detached' })
    expect(await (await fetch(String(project.url))).text()).toBe('typed by a person')
    await page.getByText('not needed').waitFor()
    await page.getByText('Bun', { exact: true }).click()
    await page.locator('.detected').getByText('by berth.json, index.ts').waitFor()
    expect(problems).toEqual([])
  })

  test('workers of an app are listed with what they do, and the log has their names', async () => {
    const { berth } = tests
    const data = await archive({
      'berth.json': JSON.stringify({ static: {}, workers: { mail: 'echo sent', clock: 'exit 3' } }),
      'index.html': 'x',
    })
    const { body: project } = await berth.call('POST', `/servers/${await berth.server()}/projects`, {
      ...{ name: 'Worked', visibility: 'public', source: { type: 'archive', data } },
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}`)
    const { page, problems } = watched
    const workers = page.getByRole('list', { name: 'Workers' }).getByRole('listitem')
    await workers.filter({ hasText: 'mail' }).getByText('stopped').waitFor()
    await workers.filter({ hasText: 'mail' }).getByText('exit code 0').waitFor()
    await workers
      .filter({ hasText: 'clock' })
      .getByText(/restart/)
      .first()
      .waitFor()
    await page
      .locator('.log-line')
      .filter({ hasText: 'sent' })
      .locator('.log-source')
      .getByText('mail')
      .waitFor()
    await page
      .locator('.notice.warning')
      .getByText(/The worker "clock" does not run/)
      .waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
    expect(problems).toEqual([])
  })

  test('an app that is up with warnings shows them until a bring-up shows none', async () => {
    const { berth } = tests
    const serverId = await berth.server()
    const write = (content: string) =>
      berth.call('PUT', `/servers/${serverId}/files`, { path: 'projects/warned/index.html', content })
    const data = await archive({ 'index.html': '<script src="/<b>none</b>.js"></script>' })
    const { body: project } = await berth.call('POST', `/servers/${serverId}/projects`, {
      ...{ name: 'Warned', visibility: 'public', source: { type: 'archive', data } },
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}`)
    const { page, problems } = watched
    const notice = page.locator('.notice.warning')
    await notice.getByText(/^Warning: The page \/ asks for .*none.*\(status 404\)/).waitFor()
    expect(await notice.locator('b').count()).toBe(0)
    expect(await faultsInAnyLook(page)).toEqual([])
    await write('<h1>fixed</h1>')
    await page.getByRole('button', { name: 'Restart' }).first().click()
    await notice.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('a bring-up that fails marks the phase that failed, and is begun again', async () => {
    const { berth } = tests
    const serverId = await berth.server()
    const manifest = { build: 'test -e fixed', start: 'bun index.ts' }
    const { body: project } = await berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Failing',
      source: {
        type: 'archive',
        data: await archive({
          'index.ts': 'Bun.serve({ port: process.env.PORT, fetch: () => new Response("up") })',
          'berth.json': JSON.stringify(manifest),
        }),
      },
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}`)
    const { page } = watched
    await page.getByText('The build failed: the log says why.').waitFor()
    expect(await page.locator('.phases .failed').textContent()).toMatch(/^build failed after /)
    expect(await page.locator('.phases .done').count()).toBe(2)
    await berth.exec(serverId, 'touch projects/failing/fixed')
    await page.getByRole('button', { name: 'Bring up again' }).click()
    await page.locator('.state').getByText('running').waitFor()
    expect(await page.locator('.phases .failed').count()).toBe(0)
  })

  test('a restart that does not come up leaves the version before running, and says so until a later change does', async () => {
    const { berth } = tests
    const serverId = await berth.server()
    const app = (text: string): string =>
      `Bun.serve({ port: process.env.PORT, fetch: () => new Response("${text}") })`
    const { body: project } = await berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Reverting',
      source: {
        type: 'archive',
        data: await archive({
          'index.ts': app('first'),
          'berth.json': JSON.stringify({ watch: true, start: 'bun index.ts' }),
        }),
      },
    })
    const write = (content: string) =>
      berth.call('PUT', `/servers/${serverId}/files`, { path: 'projects/reverting/index.ts', content })
    await using watched = await tests.open(`/dashboard/projects/${project.id}`)
    const { page } = watched
    await page.getByText('Ready after').waitFor()
    await write('process.exit(1)')
    const change = page.getByText('The last change did not come up')
    await change.waitFor()
    // The log tells it once, too.
    await page
      .locator('.log-text')
      .getByText(/exit code 1/)
      .waitFor()
    await page.getByRole('button', { name: 'Restart' }).click()
    await page.getByText('The app could not be started: the log says why. The version before runs.').waitFor()
    await change.waitFor({ state: 'detached' })
    await page.locator('.state').getByText('running').waitFor()
    await write(app('second'))
    await page.getByText('It failed at first, and came up after a later change.').waitFor()
    expect(await page.locator('.phases .failed').count()).toBe(0)
  })

  test('a project whose port another program has says so in place of links, until it answers there', async () => {
    const serverId = await tests.berth.server()
    const { body: project } = await tests.berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Taken',
      visibility: 'public',
    })
    const show = (visibility: string) => tests.berth.call('PATCH', `/projects/${project.id}`, { visibility })
    await show('private')
    const other = Bun.listen({
      hostname: '127.0.0.1',
      port: Number(new URL(project.url).port),
      socket: { data() {} },
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}`)
    const { page, problems } = watched
    const notice = page.getByRole('alert').getByText('Another program has the port of this project')
    try {
      await page.getByText('private', { exact: true }).waitFor()
      await show('public')
      await notice.waitFor()
      expect(await page.locator(`a[href="${project.url}"]`).count()).toBe(0)
    } finally {
      other.stop(true)
    }
    await notice.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Open' }).waitFor()
    expect(problems).toEqual([])
  })

  test('a variable is set, shown by its name alone, and removed', async () => {
    const serverId = await tests.berth.server()
    const { body: project } = await tests.berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Secretive',
    })
    await using watched = await tests.open(`/dashboard/projects/${project.id}/variables`)
    const { page } = watched
    await page.getByLabel('Name').fill('API_KEY')
    await page.getByLabel('Value').fill('hunter2hunter2')
    await page.getByRole('button', { name: 'Set' }).click()
    await page.getByRole('rowheader', { name: 'API_KEY' }).waitFor()
    expect(await page.content()).not.toContain('hunter2hunter2')
    await page.getByRole('button', { name: 'Remove API_KEY' }).click()
    await page.getByRole('dialog').getByText('The same from a terminal').click()
    await page.getByRole('dialog').getByText('berth secrets unset API_KEY --project secretive').waitFor()
    await page.getByRole('button', { name: 'Remove it' }).click()
    await page.getByRole('rowheader', { name: 'API_KEY' }).waitFor({ state: 'detached' })
  })

  test('the screens hinder nobody and fit, in every look', async () => {
    const serverId = await tests.berth.server()
    const { body: project } = await tests.berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Überlang '.repeat(8),
      source: { type: 'template', template: 'static-site' },
    })
    await using watched = await tests.open('/dashboard/projects', NARROW)
    const { page } = watched
    for (const [path, name] of [
      ['/dashboard/projects', 'Projects'],
      [`/dashboard/projects/${project.id}`, 'Überlang'],
    ] as const) {
      await showScreen(page, path)
      await page.getByRole('heading', { level: 1, name }).waitFor()
      await page.getByText('Überlang').first().waitFor()
      expect(await faultsInAnyLook(page)).toEqual([])
    }
  })
})
