import { describe, expect, test } from 'bun:test'
import { berthForTests, type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { archiveOf, ready } from '../support/projects.ts'
import { linkOf, Visitor } from '../support/visitor.ts'

const berth = await berthForTests()
const port = new URL(berth.info.base_url).port

/** Requests with a name, whose resolution is not left to this machine. */
const at = (host: string, cookie = '') => ({ host: `${host}:${port}`, ...(cookie !== '' && { cookie }) })

const sessionOf = (answer: Response): string => answer.headers.get('set-cookie')?.split(';')[0] ?? ''

/** Sends the form of the sign-in. */
const signIn = (own: TestBerth, host: string): Promise<Response> => {
  const name = `${host}:${new URL(own.info.base_url).port}`
  return fetch(`${own.info.base_url}/signin`, {
    method: 'POST',
    redirect: 'manual',
    headers: { host: name, origin: `http://${name}` },
    body: new URLSearchParams({ api_key: own.info.api_key }),
  })
}

describe('at a name that a project may have,', () => {
  test.each(['stock.localhost', 'STOCK.localhost', 'stock.localhost.'])(
    'nobody signs in: %s',
    async (host) => {
      const answer = await signIn(berth, host)
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([403, null])
      expect(await answer.text()).toContain(`href="${berth.info.base_url}/"`)
      const page = await fetch(`${berth.info.base_url}/signin`, { headers: at(host) })
      expect([page.status, (await page.text()).includes('api_key')]).toEqual([403, false])
    },
  )

  test('a link signs nobody in, and is not used up', async () => {
    const link = await linkOf(berth)
    const answer = await fetch(link, { redirect: 'manual', headers: at('stock.localhost') })
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([403, null])
    expect((await fetch(link, { redirect: 'manual' })).status).toBe(303)
  })

  test('a session is invalid, for pages and for the API', async () => {
    const visitor = await Visitor.of(berth)
    const csrf = await visitor.csrf()
    const statuses = async (host: string): Promise<(number | string | null)[]> => {
      const headers = { ...at(host, visitor.cookie), 'x-berth-csrf': csrf }
      const page = await fetch(`${berth.info.base_url}/access`, { redirect: 'manual', headers })
      return [page.status, (await fetch(`${berth.info.base_url}/servers`, { headers })).status]
    }
    expect(await statuses('stock.localhost')).toEqual([303, 401])
    for (const own of ['localhost', 'berth.localhost', 'a.stock.localhost'])
      expect(await statuses(own)).toEqual([200, 200])
  })
})

test.each(['localhost', 'berth.localhost', 'my.berth.localhost'])('%s signs in', async (host) => {
  const answer = await signIn(berth, host)
  expect(answer.status).toBe(303)
  expect(sessionOf(answer)).toStartWith(`berth_session_${port}=`)
})

test('the public host is never a project, and signs in', async () => {
  await using other = await testBerth({ flags: { 'public-host': 'stock.localhost' } })
  const source = await archiveOf({ 'index.html': 'an app' })
  await ready(other, await other.server(), { name: 'stock', visibility: 'public', source })
  const headers = { host: `stock.localhost:${new URL(other.info.base_url).port}` }
  expect((await other.call('GET', '/servers', undefined, headers)).body).toHaveProperty('servers')
  expect((await signIn(other, 'stock.localhost')).status).toBe(303)
})

/** An app that looks whether its own origin has become the instance's, and calls the API by the session there. */
const APP = `<!doctype html><title>app</title><script>
const look = async () => {
  const page = await (await fetch('/access', { cache: 'no-store' })).text()
  const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1]
  if (page.includes('Nobody signs in here')) document.title = 'signed out'
  else if (!csrf) setTimeout(look, 50)
  else document.title = 'servers ' + (await fetch('/servers', { headers: { 'x-berth-csrf': csrf } })).status
}
look()
</script>`

test.skipIf(browserPath === null)('a page of an app is nobody where berth answers in its place', async () => {
  await using browser = await launchBrowser()
  const context = await browser.newContext()
  const visitor = await Visitor.of(berth)
  const [name = '', value = ''] = visitor.cookie.split('=')
  await context.addCookies([{ name, value, domain: 'stock.localhost', path: '/', httpOnly: true }])
  const source = await archiveOf({ 'index.html': APP })
  const project = await ready(berth, await berth.server(), { name: 'stock', visibility: 'public', source })
  const page = await context.newPage()
  await page.goto(`http://stock.localhost:${port}/`)
  await berth.call('PATCH', `/projects/${project.id}`, { visibility: 'private' })
  await page.waitForFunction('document.title !== "app"')
  expect(await page.title()).toBe('signed out')
})

test.skipIf(browserPath === null)('an app sets no cookie for a name of berth’s own', async () => {
  await using browser = await launchBrowser()
  const context = await browser.newContext()
  const app = `<script>
for (const domain of ['', '; domain=dashboard.localhost', '; domain=localhost']) document.cookie = 'tossed=1' + domain
</script>`
  const source = await archiveOf({ 'index.html': app })
  const { url } = await ready(berth, await berth.server(), { name: 'tosses', visibility: 'public', source })
  const page = await context.newPage()
  const ownPort = new URL(url ?? '').port
  for (const name of ['dashboard', 'x.dashboard', 'berth', 'tosses', 'x.tosses'])
    await page.goto(`http://${name}.localhost:${ownPort}/`)
  await page.goto(`http://tosses.localhost:${port}/`)
  const names = (await context.cookies()).map(({ domain }) => domain)
  expect(new Set(names)).toEqual(new Set(['tosses.localhost', 'x.tosses.localhost']))
})
