import { expect, test } from 'bun:test'
import { signInBrowser } from '../../signin/browser-session.ts'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, created, settled, shown } from '../../support/projects.ts'

const berth = await berthForTests()
const serverId = await berth.server()
const signedIn = (await signInBrowser(berth.info.base_url, berth.info.api_key)).cookie

/** What a browser gets that opens an address. */
async function open(url: string | null, headers: Record<string, string> = {}) {
  const navigation = { accept: 'text/html,*/*;q=0.8', 'sec-fetch-dest': 'document', ...headers }
  const response = await fetch(url ?? '', { headers: navigation })
  return { response, page: await response.text() }
}

const broken = async (name: string) => {
  const files = { 'index.ts': 'throw new Error("broken <on> purpose " + process.env.TOKEN)' }
  const wishes = {
    name,
    visibility: 'public',
    source: await archiveOf(files),
    env: { TOKEN: 'secret-value' },
  }
  return settled(berth, (await created(berth, serverId, wishes)).id)
}

test('the page of an app that failed names the app, what happened and the next step', async () => {
  const { url } = await broken('Corner shop')
  const { response, page } = await open(url)
  expect(response.status).toBe(503)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toStartWith("default-src 'none'")
  expect(response.headers.get('retry-after')).toBe('10')
  expect(page).toContain('<h1>corner-shop is not running</h1>')
  expect(page).toContain('could not be brought up')
  expect(page).toContain('berth projects logs corner-shop')
  expect(page).toContain('berth projects push --project corner-shop')
  // Programs get what they always get, for every method.
  const posted = await fetch(url ?? '', { method: 'POST', body: 'x' })
  expect([posted.status, await posted.json()]).toEqual([
    503,
    { error: 'service_unavailable', message: 'It could not be brought up; its log says why.' },
  ])
})

test('only a browser that is signed in to the account sees the command and the end of the log', async () => {
  const { url } = await broken('Seen')
  const { page: seen, response } = await open(url, { cookie: `a=b; ${signedIn}` })
  // It is apart from pages of the app that open it in a window, as far as the browser can keep it apart.
  expect(response.headers.get('cross-origin-opener-policy')).toBe('noopener-allow-popups')
  const firefox = {
    cookie: signedIn,
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0',
  }
  const other = await open(url, firefox)
  expect(other.response.headers.get('cross-origin-opener-policy')).toBe('same-origin')
  expect(seen).toContain('Its command: <code>')
  expect(seen).toContain('broken &lt;on&gt; purpose ***')
  const { body: account } = await berth.control('POST', '/accounts', { label: 'other' })
  const others = (await signInBrowser(berth.info.base_url, account.api_key)).cookie
  const refused: Record<string, string>[] = [
    {},
    { cookie: others },
    { cookie: signedIn.replace(/=.*/, '=made-up') },
    // A script of the app's own origin, or a frame of another page.
    { cookie: signedIn, 'sec-fetch-dest': 'empty' },
    { cookie: signedIn, 'sec-fetch-dest': 'iframe' },
  ]
  for (const headers of refused) {
    const { page } = await open(url, headers)
    expect(page).not.toContain('on purpose')
    expect(page).not.toContain('index.ts')
    expect(page).toContain('<h1>seen is not running</h1>')
  }
})

test('so does the page of an app that takes long to start, which reloads itself', async () => {
  const source = await archiveOf({ 'index.ts': 'console.log("warming up"); setInterval(() => {}, 1000)' })
  const { id, url } = await created(berth, serverId, { name: 'slow', visibility: 'public', source })
  const { response, page } = await open(url, { cookie: signedIn })
  expect(response.status).toBe(503)
  expect(page).toContain('<h1>slow is starting</h1>')
  expect(page).toContain('http-equiv="refresh"')
  expect(page).toContain('warming up')
  await berth.call('DELETE', `/projects/${id}`)
}, 120_000)

test('an app that crashed is reported as such: by its page, by the API and to programs', async () => {
  // It ends when it is asked to, and does not start while the file is there.
  const index = `import { existsSync, writeFileSync } from 'node:fs'
if (existsSync('broken')) process.exit(4)
Bun.serve({ port: process.env.PORT, fetch(request) {
  if (!request.url.endsWith('/fall')) return new Response('up')
  writeFileSync('broken', '')
  process.exit(3)
} })`
  const source = await archiveOf({ 'index.ts': index })
  const made = await created(berth, serverId, { name: 'falls', visibility: 'public', source })
  const { crash, url } = await settled(berth, made.id)
  expect(crash).toBeUndefined()
  const fallen = await fetch(`${url}fall`)
  expect(fallen.status).toBe(502)
  expect(((await fallen.json()) as { message: string }).message).toMatch(
    /^The app crashed before its response was complete: it ended with exit code 3\. .*Its log tells why: berth projects logs falls$/,
  )
  await until(async () => (await shown(berth, made.id)).crash?.exit_code === 4, 'a restart that fails')
  const { crash: seen, runtime_status } = await shown(berth, made.id)
  expect(runtime_status).toBe('running')
  expect(seen).toEqual({
    reason: 'it ended with exit code 4.',
    exit_code: 4,
    since: expect.stringMatching(/^\d{4}-.*Z$/),
    restarts_at: expect.stringMatching(/^\d{4}-.*Z$/),
    attempt: expect.any(Number),
  })
  const { response, page } = await open(url)
  expect(response.status).toBe(503)
  expect(page).toContain('<h1>falls has crashed</h1>')
  expect(page).toMatch(/The app crashed \d+ s ago: it ended with exit code 4\. It is (being )?started again/)
  expect(page).toContain('berth projects restart falls')
  expect(page).toContain('berth projects push --project falls')
  await berth.call('DELETE', `/projects/${made.id}`)
}, 120_000)

test('the page of what a server publishes names its log, and how to wake the server', async () => {
  await berth.call('PUT', `/servers/${serverId}/files`, { path: 'index.html', content: 'up' })
  const { url } = (await berth.call('POST', `/servers/${serverId}/deployments`)).body
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
  const { page } = await open(url)
  expect(page).toContain(`<h1>${serverId} is not running</h1>`)
  expect(page).toContain(`berth servers start ${serverId}`)
  await berth.call('POST', `/servers/${serverId}/actions`, { action: 'start' })
})
