import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { browserPath } from '../support/browser.ts'
import { dashboardTests, faultsInAnyLook, NARROW } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('files on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()
  const content = async (serverId: string, path: string): Promise<string> => {
    const { body } = await tests.berth.call(
      'GET',
      `/servers/${serverId}/files?path=${encodeURIComponent(path)}`,
    )
    return body.content
  }

  test('a file is edited, saved by the keyboard, made, uploaded and deleted', async () => {
    const serverId = await tests.berth.server()
    await tests.berth.call('PUT', `/servers/${serverId}/files`, {
      path: 'src/app.ts',
      content: 'let a = 1\n',
    })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files`)
    const { page, problems } = watched
    await page.getByRole('button', { name: 'src' }).click()
    await page.getByRole('button', { name: 'app.ts' }).click()
    const editor = page.getByRole('textbox', { name: 'Content of src/app.ts' })
    await editor.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('let b = 2')
    await page.locator('.file-view').getByText('edited').waitFor()
    await page.keyboard.press('Control+s')
    await page.locator('.file-view').getByText('edited').waitFor({ state: 'detached' })
    expect(await content(serverId, 'src/app.ts')).toBe('let a = 1\nlet b = 2')

    await page.getByRole('button', { name: 'New file' }).click()
    await page.getByLabel('Path, from the workspace on').fill('notes.md')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('textbox', { name: 'Content of notes.md' }).waitFor()

    const directory = mkdtempSync(join(tmpdir(), 'berth-upload-'))
    try {
      writeFileSync(join(directory, 'picture.bin'), new Uint8Array([0, 255, 1, 254]))
      await page.getByLabel('Upload files').setInputFiles(join(directory, 'picture.bin'))
      // The browser reads the file when it is sent, not when it is chosen.
      await page.getByRole('button', { name: 'picture.bin' }).click()
    } finally {
      rmSync(directory, { recursive: true })
    }
    await page.getByText('4 B that are no text').waitFor()
    expect(await content(serverId, 'picture.bin')).toBe('AP8B/g==')

    await page.getByRole('button', { name: 'Delete the file' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the file' }).click()
    await page.getByRole('button', { name: 'picture.bin' }).waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('what is edited stays while something else is shown, until it is saved or discarded', async () => {
    const serverId = await tests.berth.server()
    for (const path of ['src/app.ts', 'src/other.ts'])
      await tests.berth.call('PUT', `/servers/${serverId}/files`, { path, content: 'let a = 1\n' })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files?file=src/app.ts`)
    const { page, problems } = watched
    const editor = page.getByRole('textbox', { name: 'Content of src/app.ts' })
    const view = page.locator('.file-view')
    await editor.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('let b = 2')
    await page.getByRole('button', { name: 'other.ts' }).click()
    await page.getByRole('textbox', { name: 'Content of src/other.ts' }).waitFor()
    expect(await view.getByText('edited').count()).toBe(0)

    // Another tab, and back: the same file and folder are open.
    await page.getByRole('button', { name: 'app.ts edited' }).click()
    await editor.getByText('let b = 2').waitFor()
    await page.getByRole('link', { name: 'Secrets' }).click()
    await editor.waitFor({ state: 'detached' })
    await tests.berth.call('PUT', `/servers/${serverId}/files`, {
      path: 'src/app.ts',
      content: 'let c = 3\n',
    })
    await page.getByRole('link', { name: 'Files' }).click()
    await editor.getByText('let b = 2').waitFor()
    await view.getByText('edited, and changed on the server since').waitFor()
    expect(await content(serverId, 'src/app.ts')).toBe('let c = 3\n')

    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
    await editor.getByText('let c = 3').waitFor()
    await view.getByText('edited').waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })

  test('names and contents of files are never markup', async () => {
    const serverId = await tests.berth.server()
    const path = '<img src=x onerror=alert(1)>/<b>.html'
    const hostile = '</textarea><script>document.title = "taken"</script>'
    await tests.berth.call('PUT', `/servers/${serverId}/files`, { path, content: hostile })
    const search = new URLSearchParams({ file: path })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files?${search}`)
    const { page, problems } = watched
    await page.getByText(hostile).waitFor()
    expect(await page.locator('main :is(img, script, b)').count()).toBe(0)
    expect(await page.title()).not.toBe('taken')
    expect(problems).toEqual([])
  })

  test('the screen hinders nobody and fits, in every look', async () => {
    const serverId = await tests.berth.server()
    await tests.berth.call('PUT', `/servers/${serverId}/files`, { path: 'a/b/c.json', content: '{"a": 1}' })
    await using watched = await tests.open(`/dashboard/servers/${serverId}/files?file=a/b/c.json`, NARROW)
    const { page } = watched
    await page.getByRole('textbox', { name: 'Content of a/b/c.json' }).waitFor()
    expect(await faultsInAnyLook(page)).toEqual([])
  })
})
