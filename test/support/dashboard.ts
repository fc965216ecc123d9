import { afterAll, beforeAll } from 'bun:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { type TestBerth, testBerth } from './berth.ts'
import { hindrances, type Look, launchBrowser, showIn } from './browser.ts'
import { type WatchedPage, watchedPage } from './watched-page.ts'

/** A window of a phone, at night: screens are opened and used in it before they are looked at. */
export const NARROW: Look = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }

/** A window of a desk, by day. */
export const WIDE: Look = { viewport: { width: 1280, height: 800 }, colorScheme: 'light' }

/** The sizes and schemes that every screen is looked at in. */
const LOOKS: Readonly<Record<string, Look>> = { 'narrow and dark': NARROW, 'wide and light': WIDE }

/** A browser and a berth for the tests of a file, with what opens the dashboard. */
export interface DashboardTests {
  readonly berth: TestBerth
  /** Opens a screen in a profile of its own, signed in as the instance's owner, and waits until it hears of changes. */
  open(path: string, options?: BrowserContextOptions): Promise<WatchedPage>
  /** Returns an empty page in a profile of its own, which is not signed in. */
  newPage(): Promise<WatchedPage>
}

/**
 * Starts a berth and a browser before the tests of a file, and stops them after.
 *
 * @param flags options of `serve`, by name
 * @param hasScrollbars whether scrollbars take room
 */
export function dashboardTests(flags: Record<string, unknown> = {}, hasScrollbars = false): DashboardTests {
  let berth: TestBerth
  let browser: Browser
  beforeAll(async () => {
    berth = await testBerth({ flags })
    browser = await launchBrowser(hasScrollbars)
  })
  afterAll(async () => {
    await browser?.close()
    await berth?.[Symbol.asyncDispose]()
  })
  return {
    get berth() {
      return berth
    },
    async open(path, options = {}) {
      const watched = await watchedPage(browser, options)
      await watched.page.goto(await signInLink(berth, path))
      await live(watched.page)
      return watched
    },
    newPage: () => watchedPage(browser),
  }
}

/** Makes a link that signs a browser in as the instance's owner and leads to a path. */
export async function signInLink(berth: TestBerth, path: string): Promise<string> {
  const { body } = await berth.control('POST', '/sign-in-links', { return_to: path })
  return String(body.url)
}

/** Leads an open dashboard to another of its screens without loading it anew, as the browser's buttons do. */
export async function showScreen(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  )
}

/** Waits until the page hears of changes. */
export const live = (page: Page): Promise<void> =>
  page.locator('.connection.live').first().waitFor({ state: 'attached' })

/** The parts that are as wide as the window at most. The screen scrolls by itself, so that the document fits where it does not. */
const WIDTHS = `[document.documentElement, document.querySelector('#main')].map((part) => part?.scrollWidth ?? 0)`

/**
 * Looks at the screen in every size and scheme, one after the other without loading it anew, and leaves it narrow.
 *
 * @returns a line for each thing that hinders people and for a screen that is wider than the window
 */
export async function faultsInAnyLook(page: Page): Promise<string[]> {
  const faults: string[] = []
  for (const [name, look] of Object.entries(LOOKS)) {
    await showIn(page, look)
    const width = Math.max(...(await page.evaluate<number[]>(WIDTHS)))
    if (width > look.viewport.width) faults.push(`${name}: ${width} pixels wide`)
    for (const hindrance of await hindrances(page)) faults.push(`${name}: ${hindrance}`)
  }
  await showIn(page, NARROW)
  return faults
}
