import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

/** Names of the browser: first those without windows of their own, which take two thirds of the processor time. */
const PLACES = [
  'chromium-headless-shell',
  'chrome-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
]

/** Path of an installed Chromium, or null. */
export const browserPath: string | null =
  PLACES.map((name) => Bun.which(name)).find((path) => path !== null) ?? null

/**
 * A headless browser with a fresh profile that asks nobody for anything by itself.
 *
 * @param hasScrollbars whether scrollbars take room, as with a mouse on Linux and Windows
 * @param isolatesSites whether it spreads pages over processes, as it does for people
 */
export async function launchBrowser(hasScrollbars = false, isolatesSites = false): Promise<Browser> {
  if (browserPath === null) throw new Error('No Chromium is installed.')
  // A browser that is killed, as after a test that takes too long, leaves its own temporary files.
  const temporary = mkdtempSync(join(tmpdir(), 'berth-browser-'))
  const browser = await chromium.launch({
    executablePath: browserPath,
    env: { ...process.env, TMPDIR: temporary },
    ignoreDefaultArgs: hasScrollbars ? ['--hide-scrollbars'] : [],
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // One process for all pages of a test. Starting one for each costs a fifth of the browser's processor time.
      ...(isolatesSites ? [] : ['--process-per-site', '--disable-site-isolation-trials']),
    ],
  })
  browser.on('disconnected', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }))
  return browser
}

/** A window and a scheme of colours that a page is looked at in. */
export interface Look {
  readonly viewport: { width: number; height: number }
  readonly colorScheme: 'light' | 'dark'
}

/** Shows a page in another window and scheme, without loading it anew, and without colours on their way to the new scheme. */
export async function showIn(page: Page, { viewport, colorScheme }: Look): Promise<void> {
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.evaluate('new Promise(requestAnimationFrame)')
}

/**
 * What hinders people on a page, by the rules of axe-core (WCAG 2.2, A and AA, and best practices): a line for each, with
 * where it is.
 *
 * @param without rules to leave out, such as those that take long on a large page and hold for parts of it
 */
export async function hindrances(page: Page, without: readonly string[] = []): Promise<string[]> {
  // Through the browser's own tools: no policy of the page is loosened for it.
  if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(await axe())
  const rules = Object.fromEntries(without.map((rule) => [rule, { enabled: false }]))
  // By default what passes is reported, too, which takes as long as all else.
  const options = JSON.stringify({ rules, resultTypes: ['violations'], selectors: false })
  const { violations } = (await page.evaluate(`axe.run(document, ${options})`)) as AxeResults
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html} ${failureSummary ?? ''}`),
  )
}

/** Returns the script of axe-core, minified: the browser reads it anew for each page. */
const axe = (): Promise<string> => Bun.file(fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))).text()
