import { expect, test } from 'bun:test'
import { testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { archiveOf, ready } from '../support/projects.ts'
import { linkOf } from '../support/visitor.ts'

const APP = `console.log('only for the owner')
require('node:http').createServer((_, response) => {
  response.setHeader('content-type', 'text/html')
  response.end('<title>app</title>')
}).listen(process.env.PORT)`

/** Opens a window of its own origin, and resolves to what it can read there. */
const PEEK = `new Promise((resolve) => {
  const other = window.open('/x', '_blank')
  let looks = 0
  const look = () => {
    let text = ''
    // A window that is severed is told as closed. Shortly before, its document is out of reach.
    try { text = other.closed ? 'severed' : other.document.body.innerText } catch {}
    if (other.closed || text !== '' || (looks += 1) > 40) resolve(text)
    else setTimeout(look, 50)
  }
  look()
})`

test.skipIf(browserPath === null)(
  "a page of an app reads no log in a window of berth's page, which a person sees",
  async () => {
    await using berth = await testBerth()
    await using browser = await launchBrowser()
    const context = await browser.newContext()
    const page = await context.newPage()
    const server = await berth.server()
    const source = await archiveOf({ 'app.js': APP, 'berth.json': JSON.stringify({ start: 'node app.js' }) })
    const { url } = await ready(berth, server, { name: 'app', visibility: 'public', source })
    await page.goto(await linkOf(berth))
    await page.goto(url ?? '')
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    expect(await page.evaluate(PEEK)).toBe('severed')
    const own = await context.newPage()
    await own.goto(`${url}x`)
    expect(await own.content()).toContain('only for the owner')
  },
)
