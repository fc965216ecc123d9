import { describe, expect, test } from 'bun:test'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { run, temporaryFolder } from '../cli/command.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** Texts that would end an element, run a script or load something, if the page took them as markup. */
const HOSTILE = [
  '</script><script>document.title="run"</script>',
  '<img src=x onerror="document.title=1"><a href="javascript:document.title=2">link</a>',
  '<!--<script>',
]

describe.skipIf(browserPath === null)('the page of a report (needs Chromium)', () => {
  test('opens as a file, shows what others wrote as text, and runs and loads nothing of it', async () => {
    using folder = temporaryFolder()
    const out = join(folder.path, 'out')
    const program = join(import.meta.dir, '../cli/run-report-command.ts')
    const { stderr, exitCode } = await run(
      ['run', '--report', out, '--', process.execPath, program, 'show', ...HOSTILE],
      { cwd: folder.path, env: { TMPDIR: folder.path } },
    )
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining('shows what happened'),
    })
    const page = readFileSync(join(out, 'index.html'), 'utf8')
    expect(page).toMatch(
      /<meta http-equiv="content-security-policy" content="default-src &#x27;none&#x27;|<meta http-equiv="content-security-policy" content="default-src 'none'/,
    )

    const browser = await launchBrowser()
    try {
      for (const colorScheme of ['light', 'dark'] as const) {
        const tab = await browser.newPage({ colorScheme })
        const problems: string[] = []
        tab.on('console', (message) => problems.push(message.text()))
        tab.on('pageerror', (error) => problems.push(error.message))
        tab.on('request', (request) => {
          if (!/^(?:file|data):/.test(request.url())) problems.push(request.url())
        })
        const url = pathToFileURL(join(out, 'index.html')).href
        await tab.goto(url)
        await tab.getByRole('heading', { name: 'Timeline' }).waitFor()
        await tab.getByText('task.failed').first().waitFor()
        // The steps of an agent, below its task.
        await tab.locator('button.fold').last().click()
        await tab.getByText('printf').first().waitFor()
        await tab.getByRole('link', { name: 'Requests', exact: true }).click()
        await tab.getByRole('heading', { name: 'Requests' }).waitFor()
        await tab.locator('.row-link').first().click()
        await tab.getByText('Headers of the request').waitFor()
        expect(new URL(tab.url()).hash).toStartWith('#/dashboard/requests?request=')
        await tab.getByRole('link', { name: 'Run', exact: true }).click()
        await tab.getByRole('heading', { name: 'The run failed with 1' }).waitFor()
        await tab
          .getByText(HOSTILE[0] ?? '')
          .first()
          .waitFor()
        await tab.getByRole('link', { name: 'Logs', exact: true }).click()
        await tab.getByRole('heading', { name: 'Logs' }).waitFor()
        // The title follows a screen that is there.
        await until(async () => (await tab.title()) === 'Logs · berth', 'the title of the logs')
        expect(await tab.locator('img').count()).toBe(0)
        expect(problems).toEqual([])
        await tab.close()
      }
      // A file that somebody has changed runs nothing more than before.
      appendFileSync(join(out, 'index.html'), '<script>document.title="run"</script>')
      const changed = await browser.newPage()
      await changed.goto(pathToFileURL(join(out, 'index.html')).href)
      await changed.getByRole('heading', { name: 'Timeline' }).waitFor()
      expect(await changed.title()).toBe('Timeline · berth')
    } finally {
      await browser.close()
    }
  })
})
