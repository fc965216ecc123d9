import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { until } from '../support/processes.ts'
import { archiveOf, ready } from '../support/projects.ts'
import { linkOf } from '../support/visitor.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** A service worker that keeps whatever the browser loads ahead for a page. */
const WORKER = `const read = []
addEventListener('activate', (event) => event.waitUntil(registration.navigationPreload.enable()))
addEventListener('fetch', (event) => event.respondWith((async () => {
  const loaded = await event.preloadResponse
  if (loaded) read.push(await loaded.clone().text())
  return loaded ?? fetch(event.request)
})()))`

/** An app with a service worker, and a page that asks to be apart from those of other origins, as berth's does. */
const APP = `console.log('only for the owner')
require('node:http').createServer(({ url }, response) => {
  if (url === '/together') response.setHeader('cross-origin-opener-policy', 'same-origin')
  response.setHeader('content-type', url === '/worker.js' ? 'text/javascript' : 'text/html')
  response.end(url === '/worker.js' ? ${JSON.stringify(WORKER)} : '<title>app</title>')
}).listen(process.env.PORT)`

/** Opens a window of its own origin, and resolves to what it can read there. */
const PEEK = `new Promise((resolve) => {
  const other = window.open('/x', '_blank')
  let looks = 0
  const look = () => {
    let text = ''
    // A window that is severed counts as closed. Shortly before, its document is out of reach.
    try { text = other.closed ? 'severed' : other.document.body.innerText } catch {}
    if (other.closed || text !== '' || (looks += 1) > 40) resolve(text)
    else setTimeout(look, 50)
  }
  look()
})`

describe.skipIf(browserPath === null)("in a browser that is signed in, an app's scripts read no log", () => {
  let berth: TestBerth
  let browser: Browser
  let server: string
  let url: string
  beforeAll(async () => {
    berth = await testBerth()
    browser = await launchBrowser()
    server = await berth.server()
    const source = await archiveOf({ 'app.js': APP, 'berth.json': JSON.stringify({ start: 'node app.js' }) })
    url = (await ready(berth, server, { name: 'app', visibility: 'public', source })).url ?? ''
  })
  afterAll(async () => {
    await browser?.close()
    await berth?.[Symbol.asyncDispose]()
  })

  /** Opens a page of the app, and stops it once `prepare` is done. */
  const stoppedWith = async (path: string, prepare: (page: Page) => Promise<void> = async () => {}) => {
    await berth.call('POST', `/servers/${server}/actions`, { action: 'start' })
    const page = await (await browser.newContext()).newPage()
    await page.goto(await linkOf(berth))
    await until(async () => (await page.goto(`${url}${path}`))?.status() === 200, 'the app responds')
    await prepare(page)
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    return page
  }

  test.each(['apart', 'together'])("in a window of berth's page, which a person sees: %s", async (path) => {
    const page = await stoppedWith(path)
    expect(await page.evaluate(PEEK)).toBe('severed')
    const own = await page.context().newPage()
    await own.goto(`${url}x`)
    expect(await own.getByText('only for the owner').count()).toBe(1)
  })

  test('by a service worker that has pages loaded ahead', async () => {
    const page = await stoppedWith('', async (prepared) => {
      await prepared.evaluate(`navigator.serviceWorker.register('/worker.js')`)
      await until(
        () =>
          prepared.evaluate(
            `navigator.serviceWorker.ready.then(({ active }) => active.state === 'activated')`,
          ),
        'the service worker is active',
      )
    })
    await page.goto(`${url}x`)
    await page.getByRole('heading', { name: 'app is not running' }).waitFor()
    const [worker] = page.context().serviceWorkers()
    const read = (await worker?.evaluate<string[]>('read'))?.join() ?? ''
    expect([read.includes('app is not running'), read.includes('only for the owner')]).toEqual([true, false])
  })
})
