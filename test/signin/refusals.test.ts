import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { authorizePath, hiddenFields, registerClient, signedInBrowser } from '../support/oauth.ts'
import { linkOf, Visitor } from '../support/visitor.ts'

const berth = await berthForTests()
const origin = berth.info.base_url

describe('a path whose escapes are not text', () => {
  test.each([
    '/signin/link/%ff',
    '/signin/link/%zz',
    '/servers/%E4',
    '/oauth/%ff',
    '/%',
    '/access/keys/%ff/delete',
  ])('%s is not there', async (path) => {
    const answer = await berth.fetch(path)
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: 'not_found' })
  })

  test.each([
    ['POST', '/snapshots/%ff/restore'],
    ['DELETE', '/snapshots/%ff'],
    ['POST', '/inbox/%ff'],
    ['GET', '/inbox/%ff'],
    ['POST', '/tasks/%ff/release'],
  ])('%s /_berth%s is not there', async (method, path) => {
    const headers = { authorization: `Bearer ${berth.info.admin_token}`, 'content-type': 'application/json' }
    const body = method === 'POST' ? '{}' : undefined
    const answer = await fetch(`${origin}/_berth${path}`, { method, headers, ...(body ? { body } : {}) })
    expect(answer.status).toBe(404)
    expect(await answer.text()).not.toContain('null')
  })

  test('one that is text goes on to what it names', async () => {
    const answer = await berth.fetch('/servers/%C3%A4')
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining('ä') })
  })
})

test.each([
  ['GET', '/oauth/token', 405],
  ['GET', '/.well-known/openid-configuration', 404],
  ['POST', '/cli/token', 400],
  ['POST', '/oauth/register', 400],
])('%s %s answers programs, whatever they say they take', async (method, path, status) => {
  const headers = { accept: 'text/html', 'content-type': 'application/json' }
  const answer = await fetch(`${origin}${path}`, {
    method,
    headers,
    ...(method === 'POST' && { body: '{}' }),
  })
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toStartWith('application/json')
})

describe('a path that leads to nothing', () => {
  const PATHS = ['/nope', '/nope/', '/nope/a/b', '/%', '/servers//files', '/_berth/nope', '/docs/nope']
  const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

  test.each(PATHS)('%s is a page with a way on for a browser, and JSON for programs', async (path) => {
    const page = await fetch(`${origin}${path}`, { headers: { accept: BROWSER } })
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    const text = await page.text()
    expect(text).toContain('<h1>There is no such page</h1>')
    expect(text).toContain('<a href="/">')
    expect(page.headers.get('x-request-id')).toStartWith('req_')
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/html;q=0.5',
      'text/html;q=0, */*',
    ]) {
      const answer = await fetch(`${origin}${path}`, { headers: { accept } })
      expect([accept, answer.status, await answer.json()]).toEqual([
        accept,
        404,
        { error: 'not_found', message: expect.any(String) },
      ])
    }
    const sent = await fetch(`${origin}${path}`, { method: 'POST', headers: { accept: BROWSER } })
    expect(await sent.json()).toMatchObject({ error: 'not_found' })
  })

  test('a resource that is not there is JSON for a browser too', async () => {
    const answer = await berth.fetch('/servers/srv_none', { headers: { accept: BROWSER } })
    expect(await answer.json()).toMatchObject({ error: 'not_found' })
  })
})

test('another scheme than Bearer is refused with the expected one, and not as a wrong key', async () => {
  for (const path of ['/mcp', '/servers']) {
    const answerTo = (authorization: string) =>
      fetch(`${origin}${path}`, { method: path === '/mcp' ? 'POST' : 'GET', headers: { authorization } })
    expect((await answerTo('Basic YTpi')).headers.get('www-authenticate')).not.toContain('invalid_token')
    expect((await answerTo('Bearer none')).headers.get('www-authenticate')).toContain('invalid_token')
  }
})

test.each([
  ['yes and no at once', 'decision=allow&decision=deny'],
  ['neither yes nor no', 'decision=maybe'],
  ['two reaches', 'decision=allow&access=all&access=chosen'],
])('consent is not read out of %s, and the page may be answered yet', async (_, fields) => {
  const browser = await signedInBrowser(berth)
  const page = await (await browser.send(authorizePath(await registerClient(origin)))).text()
  const hidden = new URLSearchParams(hiddenFields(page))
  const answer = (more: string) =>
    browser.send('/oauth/authorize', { method: 'POST', body: new URLSearchParams(`${hidden}&${more}`) })
  expect((await answer(fields)).status).toBe(400)
  expect((await answer('decision=allow&access=all')).status).toBe(303)
})

test('thousands of servers can be ticked', async () => {
  const browser = await signedInBrowser(berth)
  const page = await (await browser.send(authorizePath(await registerClient(origin)))).text()
  const form = new URLSearchParams({ ...hiddenFields(page), decision: 'allow', access: 'chosen' })
  for (let n = 0; n < 10_000; n += 1) form.append('server', `srv_${String(n).padStart(26, '0')}`)
  const answer = await browser.send('/oauth/authorize', { method: 'POST', body: form })
  expect(await answer.text()).toContain('Something that you ticked is gone')
})

test('names turn no text around them', async () => {
  const turning = '\u2069\u202Etxt.exe'
  const server = await berth.server({ task: turning })
  await berth.call('POST', '/keys', { label: turning, allowed_server_ids: [server] })
  const link = await linkOf(berth)
  const visitor = new Visitor(origin)
  await visitor.get(link)
  const consentPage = authorizePath(await registerClient(origin))
  for (const path of ['/access', consentPage]) {
    const { text } = await visitor.get(path)
    expect(text).toContain('<bdi>txt.exe</bdi>')
    expect(text).not.toMatch(/[\u2066-\u2069\u202A-\u202E]/)
  }
})
