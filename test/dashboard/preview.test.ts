import { expect, test } from 'bun:test'
import { testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { live, signInLink } from '../support/dashboard.ts'
import { until } from '../support/processes.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** A page that computes without a pause once `address` has responded, for which all of its process waits. */
const endless = (address: string): string =>
  `<h1>App</h1><script>const asked = new XMLHttpRequest(); asked.open("GET", "${address}", false); asked.send(); for (;;);</script>`

test.skipIf(browserPath === null)(
  'the app in the preview of a build does not hold the dashboard up, however it computes',
  async () => {
    const asked = Promise.withResolvers<void>()
    using receiver = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch() {
        asked.resolve()
        return new Response('now', { headers: { 'access-control-allow-origin': '*' } })
      },
    })
    await using berth = await testBerth()
    await using browser = await launchBrowser(false, true)
    const server = await berth.server()
    const goal = `A page\nwrite: index.html <<< ${endless(receiver.url.href)}`
    const { body } = await berth.call('POST', `/servers/${server}/builds`, { goal })
    const builds = async () => (await berth.call('GET', `/servers/${server}/builds`)).body.builds
    await until(async () => (await builds())[0].url !== null, 'the build has a URL')

    const page = await browser.newPage()
    page.setDefaultTimeout(10_000)
    await page.goto(await signInLink(berth, `/dashboard/builds/${body.build_id}`))
    await live(page)
    await page.getByRole('link', { name: 'Preview' }).click()
    await asked.promise
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('link', { name: 'index.html' }).waitFor()
    expect(page.frames()).toHaveLength(1)
  },
)
