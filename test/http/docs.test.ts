import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser, watchedPage } from '../support/browser.ts'

let berth: TestBerth
beforeAll(async () => {
  berth = await testBerth()
})
afterAll(() => berth[Symbol.asyncDispose]())

describe('GET /docs', () => {
  test('answers anybody with a page that allows itself its own instance alone', async () => {
    const response = await fetch(`${berth.info.base_url}/docs`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("connect-src 'self';")
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline/)
    expect(await response.text()).not.toMatch(/https?:\/\//)
  })

  test('its script is kept by browsers for as long as it is the same, and is asked for by its version', async () => {
    const html = await (await fetch(`${berth.info.base_url}/docs`)).text()
    const path = /<script src="([^"]+)"/.exec(html)?.[1] ?? ''
    const script = await fetch(`${berth.info.base_url}${path}`)
    expect(script.status).toBe(200)
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(script.headers.get('cache-control')).toContain('immutable')
    expect((await script.bytes()).length).toBeGreaterThan(1_000_000)
    const etag = script.headers.get('etag') ?? ''
    expect(path).toContain(JSON.parse(etag))
    const again = await fetch(`${berth.info.base_url}${path}`, { headers: { 'if-none-match': etag } })
    expect(again.status).toBe(304)
  })
})

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the page in a browser (needs Chromium)', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  test.each([
    ['a wide, light screen', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
    ['a narrow, dark screen', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
  ] as const)('on %s shows the operations and asks nobody but its instance', async (_name, options) => {
    await using watched = await watchedPage(browser, options)
    const { page, requests, problems } = watched
    await page.goto(`${berth.info.base_url}/docs`)
    await page.getByText('Provision a server').first().waitFor({ state: 'attached' })
    await page.getByPlaceholder('Token').first().waitFor()
    await page.locator('code.language-curl').first().waitFor()

    expect(await page.title()).toBe('berth')
    expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([berth.info.base_url]))
    expect(requests.map((url) => new URL(url).pathname).sort()).toEqual([
      '/docs',
      '/docs/scalar.js',
      '/openapi.json',
    ])
    expect(problems).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(options.viewport.width)
    const dark = await page.evaluate('document.body.classList.contains("dark-mode")')
    expect(dark).toBe(options.colorScheme === 'dark')
  })

  test('samples carry the address of the instance, and a request sent from the page is answered', async () => {
    await using watched = await watchedPage(browser, { viewport: { width: 1280, height: 900 } })
    const { page, requests, problems } = watched
    await page.goto(`${berth.info.base_url}/docs`)
    await page.getByPlaceholder('Token').first().fill(berth.info.api_key)
    await page.getByText('List servers').first().click()
    const { host } = new URL(berth.info.base_url)
    await page
      .locator('code.language-curl', { hasText: `curl http://${host}/servers \\` })
      .first()
      .waitFor()
    await page.getByRole('button', { name: /Test Request\s*\(get \/servers\)/ }).click()
    const answered = page.waitForResponse((response) => response.url().endsWith('/servers'))
    await page
      .getByRole('button', { name: `Send get request to http://${host}/servers` })
      .first()
      .click()
    const response = await answered

    expect(response.status()).toBe(200)
    expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([berth.info.base_url]))
    expect(problems).toEqual([])
    // The page forgets the key when it is closed.
    expect(await page.evaluate('JSON.stringify({ ...localStorage })')).not.toContain(berth.info.api_key)
  })
})
