import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { desktopOf, newPerson, startLogin } from '../cli/sign-in.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { until } from '../support/processes.ts'
import { watchedPage } from '../support/watched-page.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** Has somebody sign in on the page that stands there instead of the one that was asked for. */
async function signInOn(page: Page, { api_key }: TestBerth['info']): Promise<void> {
  await page.getByLabel('API key').fill(api_key)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** What a checker of accessibility finds on the page (WCAG 2.2, A and AA). */
async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const found = (await page.evaluate('axe.run()')) as { violations: { id: string; help: string }[] }
  return found.violations.map(({ id, help }) => `${id}: ${help}`)
}

describe.skipIf(browserPath === null)('signing in from a terminal in a browser (needs Chromium)', () => {
  let berth: TestBerth
  let browser: Browser
  beforeAll(async () => {
    ;[berth, browser] = await Promise.all([testBerth(), launchBrowser()])
  })
  afterAll(async () => {
    await browser?.close()
    await berth?.[Symbol.asyncDispose]()
  })

  test.each([
    ['Approve', 'You are signed in', 0],
    ['Deny', 'Denied', 1],
  ] as const)(
    'a person signs in, presses %s, and the browser ends at the terminal: %s',
    async (name, title, exitCode) => {
      using person = newPerson()
      const { base_url } = berth.info
      await using login = startLogin([base_url], person, desktopOf(person).env)
      await using watched = await watchedPage(browser, { viewport: { width: 320, height: 640 } })
      const { page, problems } = watched
      const asked = await login.page()
      await page.goto(asked.href)
      await signInOn(page, berth.info)
      await page.getByRole('heading', { name: 'Sign in a terminal?' }).waitFor()
      expect(page.url()).toBe(asked.href)
      expect(await faultsOf(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
      await page.getByRole('button', { name }).click()
      await page.getByRole('heading', { name: title }).waitFor()
      expect(new URL(page.url()).host).toBe(`127.0.0.1:${asked.searchParams.get('redirect_port')}`)
      // The terminal's own page looks like those of the instance, by the policy that it has.
      expect(await page.evaluate('getComputedStyle(document.querySelector("main")).maxWidth')).toBe('576px')
      expect(await faultsOf(page)).toEqual([])
      expect(problems).toEqual([])
      expect((await login.ended).exitCode).toBe(exitCode)
      expect(person.kept()?.current ?? null).toBe(exitCode === 0 ? base_url : null)
    },
  )

  test('a person reads the code on a dark, narrow page and types it in', async () => {
    using person = newPerson()
    await using login = startLogin([berth.info.base_url, '--no-browser'], person)
    await using watched = await watchedPage(browser, {
      viewport: { width: 320, height: 640 },
      colorScheme: 'dark',
    })
    const { page, problems } = watched
    await page.goto((await login.page()).href)
    await signInOn(page, berth.info)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('heading', { name: 'Your code' }).waitFor()
    expect(await faultsOf(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    login.type((await page.locator('#code').textContent()) ?? '')
    expect((await login.ended).exitCode).toBe(0)
    expect(problems).toEqual([])
  })

  test('a page of elsewhere can neither frame the question nor send its form', async () => {
    await using foreign = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () =>
        new Response(
          `<!doctype html><iframe src="${berth.info.base_url}/cli/authorize?${query}"></iframe>
<form method="post" action="${berth.info.base_url}/cli/authorize?${query}"><input name="decision" value="approve"><button>Win</button></form>`,
          { headers: { 'content-type': 'text/html' } },
        ),
    })
    const query = new URLSearchParams({ challenge: 'x'.repeat(43), host: 'desk' })
    await using watched = await watchedPage(browser)
    const { page, problems } = watched
    await page.goto(`${berth.info.base_url}/signin`)
    await signInOn(page, berth.info)
    await page.waitForURL(`${berth.info.base_url}/`)
    await page.goto(foreign.url.href)
    await until(() => problems.some((problem) => problem.includes('frame')), 'the frame is refused')
    await page.getByRole('button', { name: 'Win' }).click()
    await page.getByRole('heading', { name: 'This form is out of date' }).waitFor()
  })
})
