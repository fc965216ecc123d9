import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '../../src/runtime/version.ts'
import { testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { live, showScreen, signInLink } from '../support/dashboard.ts'
import { SimulatedEngine } from '../support/engines/simulated-engine.ts'
import { watchedPage } from '../support/watched-page.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

test.skipIf(browserPath === null)(
  'a server whose engine does not respond is unreachable, and its use is not shown, until it is back (needs Chromium)',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'berth-engine-'))
    const socket = join(directory, 'engine.sock')
    try {
      using engine = new SimulatedEngine(socket)
      const flags = { compute: 'docker', engine: `unix://${socket}` }
      await using berth = await testBerth({ flags, dependencies: { version: VERSION } })
      await using browser = await launchBrowser()
      const server = await berth.server({ task: 'away' })
      await using watched = await watchedPage(browser)
      const { page } = watched
      await page.goto(await signInLink(berth, '/dashboard/servers'))
      await live(page)
      const row = page.locator('.row', { hasText: 'away' })
      await row.getByTitle(/^Memory: 5/).waitFor()
      const goOn = engine.stop()
      await row.getByText('unreachable').waitFor()
      await row.getByTitle(/^CPU: – of /).waitFor()
      await row.getByTitle(/^Memory: – of /).waitFor()
      await showScreen(page, `/dashboard/servers/${server}`)
      await page.locator('.screen-head, main').first().getByText('unreachable').waitFor()
      goOn()
      await page.getByTitle(/^Memory: 5/).waitFor()
      expect(await page.getByText('unreachable').count()).toBe(0)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
  120_000,
)
