import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { makeAuthority } from '../support/authority.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, hindrances, launchBrowser } from '../support/browser.ts'
import { authorizePath, exchangeCode, registerClient } from '../support/oauth.ts'
import { signInTo } from '../support/pages.ts'
import { watchedPage } from '../support/watched-page.ts'

describe.skipIf(browserPath === null)('the consent page in a browser', () => {
  let berth: TestBerth
  let browser: Browser
  let serverId: string
  let host: ReturnType<typeof Bun.serve>
  let came: URL[]
  /** Where the client sends the browser on to; it shows a page of its own by default. */
  let onward: string | null = null
  beforeAll(async () => {
    berth = await testBerth()
    serverId = await berth.server({ task: 'web shop' })
    await berth.call('POST', `/servers/${serverId}/projects`, { name: 'Shop front' })
    browser = await launchBrowser()
    came = []
    host = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request) => {
        came.push(new URL(request.url))
        if (onward !== null) return Response.redirect(onward, 302)
        return new Response('<title>back</title>', { headers: { 'content-type': 'text/html' } })
      },
    })
  })
  afterAll(async () => {
    await host?.stop(true)
    await browser?.close()
    await berth?.[Symbol.asyncDispose]()
  })

  const opened = async (options = {}) => {
    const client = await registerClient(berth.info.base_url, { redirect_uris: ['http://127.0.0.1/callback'] })
    const redirectUri = `http://127.0.0.1:${host.port}/callback`
    const watched = await watchedPage(browser, options)
    await watched.page.goto(`${berth.info.base_url}${authorizePath(client, { redirectUri })}`)
    await watched.page.getByLabel('API key').fill(berth.info.api_key)
    await watched.page.getByRole('button', { name: 'Sign in' }).click()
    return { client, redirectUri, watched, page: watched.page }
  }

  test('a person signs in, lets the client in for a server, and the code arrives', async () => {
    const { client, redirectUri, watched, page } = await opened()
    await page.getByLabel('Only what I tick').check()
    await page.getByLabel('web shop').first().check()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${redirectUri}?**`)
    const url = came.find(({ pathname }) => pathname === '/callback')
    const code = url?.searchParams.get('code') ?? ''
    const response = await exchangeCode({ client, code, redirectUri, origin: berth.info.base_url })
    const { access_token } = (await response.json()) as { access_token: string }
    const servers = await fetch(`${berth.info.base_url}/servers`, {
      headers: { authorization: `Bearer ${access_token}` },
    })
    expect(await servers.json()).toMatchObject({ servers: [{ id: serverId }] })
    expect(watched.problems).toEqual([])
    await watched[Symbol.asyncDispose]()
  })

  test('nothing is sent before something is chosen; a denial needs no choice', async () => {
    const { redirectUri, watched, page } = await opened()
    await page.getByRole('button', { name: 'Allow' }).click()
    expect(new URL(page.url()).pathname).toBe('/oauth/authorize')
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.waitForURL(`${redirectUri}?error=access_denied**`)
    expect(watched.problems).toEqual([])
    await watched[Symbol.asyncDispose]()
  })

  test('a client that sends the browser on to a page of its maker is not held up', async () => {
    const identity = makeAuthority().issue('IP:127.0.0.1')
    await using maker = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: identity,
      fetch: () => new Response('<title>done</title>', { headers: { 'content-type': 'text/html' } }),
    })
    onward = `https://127.0.0.1:${maker.port}/done`
    const { watched, page } = await opened({ ignoreHTTPSErrors: true })
    await page.getByLabel('The whole account').check()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(onward)
    expect(watched.problems).toEqual([])
    onward = null
    await watched[Symbol.asyncDispose]()
  })

  test('what was ticked is out of sight beside the whole account, and a choice of both is asked anew', async () => {
    const { watched, page } = await opened()
    const box = page.getByLabel('web shop').first()
    await page.getByLabel('Only what I tick').check()
    await box.check()
    await page.getByLabel('The whole account').check()
    expect(await box.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('alert').waitFor()
    expect(await box.isVisible()).toBe(true)
    expect(await page.locator('input:checked').count()).toBe(0)
    await watched[Symbol.asyncDispose]()
  })

  test('a client of elsewhere that asked in a wrong way is notified by a click', async () => {
    const client = await registerClient(berth.info.base_url, { redirect_uris: ['https://app.example/back'] })
    for (const colorScheme of ['light', 'dark'] as const) {
      await using watched = await watchedPage(browser, { viewport: { width: 320, height: 800 }, colorScheme })
      const { page } = watched
      await page.route('https://app.example/**', (route) => route.fulfill({ body: 'back' }))
      const path = authorizePath(client, { parameters: { response_type: 'token' } })
      await signInTo(page, berth, path)
      expect(await page.locator('h1').textContent()).toBe('This program asked in a wrong way')
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320)
      expect(await hindrances(page)).toEqual([])
      const sent = page.waitForRequest('https://app.example/**')
      await page.getByRole('link', { name: 'Go back to app.example' }).click()
      expect((await sent).headers().referer).toBeUndefined()
      await page.waitForURL('https://app.example/back?error=unsupported_response_type&**')
    }
  })

  test('it is readable on 320 pixels, and to assistive technology', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { watched, page } = await opened({ viewport: { width: 320, height: 800 }, colorScheme })
      await page.getByLabel('Only what I tick').check()
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320)
      await page
        .context()
        .newCDPSession(page)
        .then((session) => session.send('Page.setBypassCSP', { enabled: true }))
      await page.reload()
      await page.addScriptTag({ path: require.resolve('axe-core/axe.min.js') })
      const { violations } = (await page.evaluate('axe.run()')) as { violations: { id: string }[] }
      expect(violations.map(({ id }) => id)).toEqual([])
      await watched[Symbol.asyncDispose]()
    }
  })
})
