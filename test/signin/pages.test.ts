import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, hindrances, launchBrowser, showIn } from '../support/browser.ts'
import { SEEN_PAGES, type SeenPage, signInTo } from '../support/pages.ts'
import { archiveOf, ready } from '../support/projects.ts'
import { type WatchedPage, watchedPage } from '../support/watched-page.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** The windows that every page is looked at in, one after the other without loading it anew. */
const LOOKS = [
  { viewport: { width: 320, height: 640 }, colorScheme: 'dark' },
  { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
] as const

/** A response with a failure is reported on the console, too. */
const ANSWERED = /^Failed to load resource: the server responded with a status of 4\d\d/

/** What has the focus, as a person knows it. */
const focused = (page: Page): Promise<string> =>
  page.evaluate('(document.activeElement?.innerText || document.activeElement?.id || "").trim()')

/** Goes on with Tab until something has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  const passed: string[] = []
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press('Tab')
    const at = await focused(page)
    if (at.startsWith(name)) return
    passed.push(at)
  }
  throw new Error(`Tab never comes to ${name}, only to ${passed.join(', ')}`)
}

/** Of radio buttons of a name Tab comes to one, which arrow keys leave. */
const CONTROLS = ['a[href]', 'button', 'input:not([type=hidden], [type=radio])', '[tabindex="0"]']

/** Goes through a page with Tab, and expects that every control has the focus once, with an outline. */
async function reachAllByTab(page: Page): Promise<void> {
  // Noted in the page, since to ask after each press takes as long as to press.
  await page.evaluate(`
    window.outlines = []
    document.addEventListener('focusin', ({ target }) => {
      target.dataset.reached = ''
      outlines.push(getComputedStyle(target).outlineStyle)
    })`)
  const all = await page.locator(CONTROLS.map((one) => `${one}:visible`).join()).count()
  for (let presses = 0; presses < all + 5; presses += 1) await page.keyboard.press('Tab')
  const outlines = await page.evaluate<string[]>('outlines')
  expect(new Set(outlines)).toEqual(new Set(all === 0 ? [] : ['solid']))
  expect(await page.locator(CONTROLS.map((one) => `${one}[data-reached]`).join()).count()).toBe(all)
}

describe.skipIf(browserPath === null)('in a browser (needs Chromium)', () => {
  let berth: TestBerth
  let browser: Browser
  beforeAll(async () => {
    berth = await testBerth()
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await berth[Symbol.asyncDispose]()
  })

  /** Tests each page in one profile, which is as new before each: contexts of their own cost most of the time. */
  function onEachPage(
    name: string,
    options: BrowserContextOptions,
    check: (watched: WatchedPage, seen: SeenPage) => Promise<void>,
  ): void {
    describe(name, () => {
      let watched: WatchedPage
      beforeAll(async () => {
        watched = await watchedPage(browser, options)
      })
      afterAll(() => watched?.[Symbol.asyncDispose]())
      test.each(SEEN_PAGES.map((seen) => [seen.name, seen] as const))('the page: %s', async (_name, seen) => {
        await watched.page.context().clearCookies()
        watched.requests.length = 0
        watched.problems.length = 0
        await seen.open(watched.page, berth)
        await check(watched, seen)
      })
    })
  }

  onEachPage(
    'a page hinders nobody, keeps its policy, fits the screen and shows where the keyboard is, in every look',
    {},
    async ({ page, requests, problems }) => {
      for (const look of LOOKS) {
        await showIn(page, look)
        expect(await hindrances(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          look.viewport.width,
        )
      }
      expect(problems.filter((problem) => !ANSWERED.test(problem))).toEqual([])
      expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([berth.info.base_url]))
      expect(await page.evaluate('document.scripts.length')).toBe(0)
      await reachAllByTab(page)
    },
  )

  onEachPage(
    'without JavaScript a page is there',
    { javaScriptEnabled: false },
    async ({ page }, { heading }) => {
      expect(await page.locator('h1').textContent()).toBe(heading)
      expect(await page.locator('main').isVisible()).toBe(true)
    },
  )

  test.each([true, false])(
    'the whole way: the printed link, a key that is revealed and deleted, the way out (JavaScript: %p)',
    async (javaScriptEnabled) => {
      await using own = await testBerth()
      await using watched = await watchedPage(browser, { javaScriptEnabled })
      const { page, requests, problems } = watched
      const { body: key } = await own.call('POST', '/keys', { label: 'Laptop' })
      await page.goto(own.info.sign_in_url)
      expect(page.url()).toBe(`${own.info.base_url}/`)
      await page.waitForLoadState('networkidle')
      await page.goto(`${own.info.base_url}/access`)
      await page.getByText('First account').waitFor()

      await page.getByRole('button', { name: 'Reveal the key Laptop' }).click()
      await page.getByRole('heading', { name: 'API key Laptop' }).waitFor()
      expect(await page.locator('.secret').textContent()).toBe(key.key)
      await page.getByRole('link', { name: 'Back' }).click()

      await page.getByRole('link', { name: 'Delete the key Laptop' }).click()
      await page.getByRole('button', { name: 'Delete the key' }).click()
      await page.getByRole('status').waitFor()
      expect(page.url()).toBe(`${own.info.base_url}/access?done=key-deleted`)
      expect(await page.getByText('Laptop').count()).toBe(0)

      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      await page.goto(`${own.info.base_url}/access`)
      expect(new URL(page.url()).pathname).toBe('/signin')
      await page.goto(own.info.sign_in_url)
      await page.getByRole('heading', { name: 'not valid any more' }).waitFor()

      expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([own.info.base_url]))
      expect(requests.filter((url) => url.includes(key.key))).toEqual([])
      expect(problems.filter((problem) => !ANSWERED.test(problem))).toEqual([])
    },
  )

  test('by the keyboard alone: sign in with a key, reveal another, delete it, sign out', async () => {
    await using own = await testBerth()
    const { body: key } = await own.call('POST', '/keys', { label: 'Laptop' })
    await using watched = await watchedPage(browser)
    const { page } = watched
    await page.goto(`${own.info.base_url}/access`)
    await tabTo(page, 'api_key')
    await page.keyboard.type(own.info.api_key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Access' }).waitFor()
    await tabTo(page, 'Reveal')
    await page.keyboard.press('Enter')
    await page.getByText(key.key).waitFor()
    await tabTo(page, 'Back')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Access' }).waitFor()
    await tabTo(page, 'Delete')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Delete the API key Laptop?' }).waitFor()
    await tabTo(page, 'Delete the key')
    await page.keyboard.press('Enter')
    await page.getByRole('status').waitFor()
    await tabTo(page, 'Sign out')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test.each([320, 360])('at %d pixels neither a mark nor a masked key breaks in two', async (width) => {
    await using own = await testBerth()
    for (let n = 0; n < 12; n += 1) await own.call('POST', '/keys', { label: `Laptop${' x'.repeat(n)}` })
    const agent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) HeadlessChrome/140.0.0.0 Safari/537.36'
    await using watched = await watchedPage(browser, { viewport: { width, height: 640 }, userAgent: agent })
    await signInTo(watched.page, own)
    const lines = await watched.page.evaluate(
      `[...document.querySelectorAll('.mark, .what > p:first-child code')].map((one) => one.getClientRects().length)`,
    )
    expect(lines).toEqual(Array.from({ length: 14 }, () => 1))
  })

  test("another port's page finds the session of no use: its form is refused, its frame stays empty", async () => {
    await using watched = await watchedPage(browser)
    const { page, problems } = watched
    await signInTo(page, berth)
    const csrf = await page.locator('input[name=csrf]').first().inputValue()
    const origin = berth.info.base_url
    const content = `<form method=post action="${origin}/signout"><input name=csrf value="${csrf}"><button>go</button></form>
<iframe src="${origin}/access"></iframe>`
    // As an app on a port of its own: the same site to a browser, which sends the cookie along.
    const app = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(content, { headers: { 'content-type': 'text/html' } }),
    })
    try {
      await page.goto(app.url.href)
      await page.getByRole('button', { name: 'go' }).click()
      await page.getByRole('heading', { name: 'This form is out of date' }).waitFor()
      expect(problems.some((problem) => /frame-ancestors|X-Frame-Options/.test(problem))).toBe(true)
      await page.goto(`${origin}/access`)
      expect(await page.locator('h1').textContent()).toBe('Access')
    } finally {
      await app.stop(true)
    }
  })

  test('an app that berth serves neither gets the session nor takes it away', async () => {
    await using own = await testBerth()
    const { port } = new URL(own.info.base_url)
    const source = await archiveOf({
      'index.ts': `Bun.serve({ port: Number(process.env.PORT), fetch: (request) =>
  new Response('got: ' + request.headers.get('cookie'), { headers: [
    ['set-cookie', 'berth_session_${port}=evil; Path=/'],
    ['set-cookie', 'own=1; Path=/'],
  ] }) })`,
    })
    const { url } = await ready(own, await own.server(), { visibility: 'public', source })
    await using watched = await watchedPage(browser)
    const { page } = watched
    await signInTo(page, own)
    expect((await page.context().cookies()).map(({ name }) => name)).toEqual([`berth_session_${port}`])
    // The same host to a browser, which sends it all cookies of the pages.
    expect(new URL(url ?? '').hostname).toBe(new URL(own.info.base_url).hostname)
    for (const got of ['got: null', 'got: own=1']) {
      await page.goto(url ?? '')
      expect(await page.locator('body').textContent()).toBe(got)
    }
    await page.goto(`${own.info.base_url}/access`)
    expect(await page.locator('h1').textContent()).toBe('Access')
  })
})
