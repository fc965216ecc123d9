import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { watchedPage } from '../support/watched-page.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

const SEEN = `JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, innerWidth,
  matchMedia('(prefers-color-scheme: dark)').matches, document.querySelector('p:hover') === null])`

test.skipIf(browserPath === null)('a page that a test has had is as new to the next one', async () => {
  await using site = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response('<title>served</title><p>text', { headers: { 'content-type': 'text/html' } }),
  })
  await using browser = await launchBrowser()
  const look = async (page: Page): Promise<unknown> => {
    await page.goto(site.url.href)
    return JSON.parse(await page.evaluate<string>(SEEN))
  }
  const asNew = ['', {}, {}, 1280, false, true]
  let first: Page
  let heard: readonly string[]
  {
    const options = { viewport: { width: 400, height: 300 }, colorScheme: 'dark' } as const
    await using watched = await watchedPage(browser, options)
    const { page, requests } = watched
    first = page
    heard = requests
    expect(await look(page)).toEqual(['', {}, {}, 400, true, true])
    await page.route('**/*', (route) => route.fulfill({ body: 'in its place', contentType: 'text/html' }))
    await page.evaluate(`document.cookie = 'a=1'; localStorage.b = 2; sessionStorage.c = 3`)
    await page.locator('p').hover()
    expect(await look(page)).toEqual(['a=1', { b: '2' }, { c: '3' }, 400, true, true])
    expect(requests).toEqual([site.url.href, site.url.href])
  }
  {
    await using watched = await watchedPage(browser)
    const { page, requests } = watched
    expect(page).toBe(first)
    expect(await look(page)).toEqual(asNew)
    expect(await page.title()).toBe('served')
    expect(requests).toEqual([site.url.href])
    expect(heard).toHaveLength(2)
    watched.spend()
  }
  await using watched = await watchedPage(browser)
  expect(watched.page).not.toBe(first)
  expect(await look(watched.page)).toEqual(asNew)
})
