import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { LiveReload } from '../../../src/hosting/static/reload.ts'
import { serveFiles } from '../../../src/hosting/static/serve.ts'
import { browserPath, launchBrowser } from '../../support/browser.ts'
import { until } from '../../support/processes.ts'
import { testSite } from './support.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed, so that no page can be reloaded')

async function reloadingSite() {
  const root = mkdtempSync(join(tmpdir(), 'berth-reload-'))
  const reload = new LiveReload()
  const serve = serveFiles(new LocalWorkspace(root), '', { fallback: false, reload })
  const site = await testSite({ upstream: { kind: 'files', serve } })
  return {
    root,
    reload,
    url: site.site.url,
    async [Symbol.asyncDispose]() {
      await site[Symbol.asyncDispose]()
      rmSync(root, { recursive: true })
    },
  }
}

test('pages get a script before </body> and nothing else changes; other files and tags stay', async () => {
  await using site = await reloadingSite()
  const before = 'ünïcode <!-- </body> --><p>\xff'
  writeFileSync(join(site.root, 'index.html'), `${before}</BODY></html>\r\n`, 'latin1')
  writeFileSync(join(site.root, 'bare.html'), '<p>bare')
  writeFileSync(join(site.root, 'a.js'), '"</body>"')
  const response = await fetch(site.url)
  const text = Buffer.from(await response.arrayBuffer()).toString('latin1')
  expect(text).toMatch(/<p>\xff<script>[^<]*<\/script><\/BODY><\/html>\r\n$/)
  expect(text.replace(/<script>[^<]*<\/script>/, '')).toBe(`${before}</BODY></html>\r\n`)
  expect(Number(response.headers.get('content-length'))).toBe(text.length)
  const etag = response.headers.get('etag') ?? ''
  expect((await fetch(site.url, { headers: { 'if-none-match': etag } })).status).toBe(304)
  expect(await (await fetch(`${site.url}bare.html`)).text()).toMatch(/^<p>bare<script>/)
  expect(await (await fetch(`${site.url}a.js`)).text()).toBe('"</body>"')
})

test('a listener is notified of each change, and is forgotten when it goes away', async () => {
  await using site = await reloadingSite()
  const stop = new AbortController()
  const response = await fetch(`${site.url}.berth/reload`, { signal: stop.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  let text = ''
  const reading = (async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
  })().catch(() => {})
  const versions = () => [...text.matchAll(/event: version\ndata: (.*)\n\n/g)].map((match) => match[1])
  await until(() => versions().length === 1, 'the first version comes')
  site.reload.changed()
  await until(() => versions().length === 2, 'the next version comes')
  expect(versions()[0]).not.toBe(versions()[1])
  stop.abort()
  await reading
  await until(() => site.reload.pages === 0, 'it is forgotten')
})

test.skipIf(browserPath === null)('an open page reloads when files have changed', async () => {
  await using site = await reloadingSite()
  writeFileSync(join(site.root, 'index.html'), '<title>one</title><body></body>')
  await using browser = await launchBrowser()
  const page = await browser.newPage()
  await page.goto(site.url)
  await until(() => site.reload.pages === 1, 'the page listens')
  writeFileSync(join(site.root, 'index.html'), '<title>two</title><body></body>')
  site.reload.changed()
  await until(async () => (await page.title()) === 'two', 'it reloads')
  await page.close()
  await until(() => site.reload.pages === 0, 'the page is gone')
})
