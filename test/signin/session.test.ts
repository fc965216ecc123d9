import { describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests, testBerth } from '../support/berth.ts'
import { linkOf, Visitor } from '../support/visitor.ts'

const berth = await berthForTests()

const visitor = (): Visitor => new Visitor(berth.info.base_url)
const isSignedIn = async (one: Visitor): Promise<boolean> => (await one.get('/access')).status === 200

describe('a session', () => {
  test('is a cookie that no script reads and no form of elsewhere brings, with a name for each port', async () => {
    const answer = await visitor().get(await linkOf(berth))
    const [cookie = '', ...more] = answer.headers.getSetCookie()
    expect(more).toEqual([])
    const { port } = new URL(berth.info.base_url)
    expect(cookie).toMatch(new RegExp(`^berth_session_${port}=[0-9A-Za-z]{43}; `))
    expect(cookie.toLowerCase().split('; ').slice(1).sort()).toEqual([
      'httponly',
      'max-age=2592000',
      'path=/',
      'samesite=lax',
    ])
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('begins with an API key that reaches the whole account', async () => {
    const one = visitor()
    const answer = await one.post('/signin', { api_key: ` ${berth.info.api_key} `, return_to: '/docs' })
    expect([answer.status, answer.location]).toEqual([303, '/docs'])
    expect(await isSignedIn(one)).toBe(true)
  })

  test('does not begin with a wrong key, or one that reaches a part', async () => {
    const id = await berth.server()
    const { body: key } = await berth.call('POST', '/keys', { label: 'part', allowed_server_ids: [id] })
    for (const api_key of ['', 'sk_live_wrong', key.key, 'berth_at_x']) {
      const one = visitor()
      const answer = await one.post('/signin', { api_key })
      expect([answer.status, one.cookie]).toEqual([401, ''])
      expect(answer.text).toContain('role="alert"')
      if (api_key) expect(answer.text).not.toContain(api_key)
    }
  })

  test('begun with a key ends with that key, and with its reaching less', async () => {
    for (const end of ['delete', 'limit']) {
      const { body: key } = await berth.call('POST', '/keys', { label: end })
      const one = visitor()
      await one.post('/signin', { api_key: key.key })
      expect(await isSignedIn(one)).toBe(true)
      if (end === 'delete') await berth.call('DELETE', `/keys/${key.id}`)
      else await berth.call('PATCH', `/keys/${key.id}`, { allowed_server_ids: [await berth.server()] })
      expect(await isSignedIn(one)).toBe(false)
    }
  })

  test('ends at once by signing out: its cookie opens nothing any more', async () => {
    const one = await Visitor.of(berth)
    const { cookie } = one
    const answer = await one.submit('/signout')
    expect([answer.status, answer.location, one.cookie]).toEqual([303, '/signin?done=signed-out', ''])
    one.cookie = cookie
    expect(await isSignedIn(one)).toBe(false)
  })

  test('opens pages alone: to the API the cookie is not a credential', async () => {
    const one = await Visitor.of(berth)
    expect((await one.get('/servers')).status).toBe(401)
    expect((await one.get('/_berth/accounts')).status).toBe(401)
  })

  test('sends who is not signed in to the sign-in, and brings them back', async () => {
    const answer = await visitor().get('/access?done=x')
    expect([answer.status, answer.location]).toEqual([
      303,
      `/signin?return_to=${encodeURIComponent('/access?done=x')}`,
    ])
    expect((await visitor().get('/')).location).toBe('/signin?return_to=%2F')
    const head = await fetch(`${berth.info.base_url}/`, { method: 'HEAD', redirect: 'manual' })
    expect([head.status, head.headers.get('location')]).toEqual([303, '/signin?return_to=%2F'])
    expect((await (await Visitor.of(berth)).get('/')).status).toBe(200)
  })

  test('says at the sign-in who waits for it', async () => {
    const textAt = async (path: string) =>
      (await visitor().get(`/signin?return_to=${encodeURIComponent(path)}`)).text
    expect(await textAt('/oauth/authorize?client_id=x')).toContain('A program asks to be let in.')
    expect(await textAt('/cli/authorize?challenge=x')).toContain('A terminal asks for an API key of its own.')
    expect(await textAt('/access')).not.toContain('asks')
  })
})

describe('session fixation', () => {
  test('a cookie that is brought along is never adopted', async () => {
    const { port } = new URL(berth.info.base_url)
    for (const signIn of [
      async (one: Visitor) => one.get(await linkOf(berth)),
      (one: Visitor) => one.post('/signin', { api_key: berth.info.api_key }),
    ]) {
      const victim = visitor()
      victim.cookie = `berth_session_${port}=${'A'.repeat(43)}`
      const brought = victim.cookie
      await signIn(victim)
      expect(victim.cookie).not.toBe(brought)
      const attacker = visitor()
      attacker.cookie = brought
      expect(await isSignedIn(attacker)).toBe(false)
    }
  })

  test('a session of another account that is laid before the own one is not acted for', async () => {
    const { id, api_key } = (await berth.control('POST', '/accounts', { label: 'of another' })).body
    const own = await Visitor.of(berth)
    const other = await Visitor.of(berth, id)
    const second = await Visitor.of(berth)
    for (const cookie of [`${other.cookie}; ${own.cookie}`, `${own.cookie}; ${other.cookie}`]) {
      const both = visitor()
      both.cookie = cookie
      const page = await both.get('/access')
      expect([page.status, page.text]).toEqual([403, expect.stringContaining('signed in twice')])
      expect(page.text).not.toContain(api_key.slice(-4))
    }
    // Two of one account are nobody's trick.
    const twice = visitor()
    twice.cookie = `${second.cookie}; ${own.cookie}`
    expect((await twice.get('/access')).status).toBe(200)
    await berth.control('DELETE', `/accounts/${id}`)
  })

  test('a new sign-in in the same browser has a new secret, and the one of before opens nothing', async () => {
    const one = await Visitor.of(berth)
    const before = one.cookie
    await one.get(await linkOf(berth))
    expect(one.cookie).not.toBe(before)
    const attacker = visitor()
    attacker.cookie = before
    expect(await isSignedIn(attacker)).toBe(false)
    expect(await isSignedIn(one)).toBe(true)
  })

  test("another port's cookie of the same name neither hides the session nor counts", async () => {
    const one = await Visitor.of(berth)
    const own = one.cookie
    const [name] = own.split('=')
    one.cookie = `${name}=laid; ${own}`
    expect(await isSignedIn(one)).toBe(true)
    one.cookie = own.replace(/\d+=/, '1=')
    expect(await isSignedIn(one)).toBe(false)
  })
})

describe('an open redirect after the sign-in', () => {
  test.each([
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    'https://evil.example',
    'https:evil.example',
    'javascript:alert(1)',
    '/\t/evil.example',
    '/\n/evil.example',
    '\t//evil.example',
    ' //evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    '/%2e//evil.example',
    '@evil.example',
    '.evil.example',
    '/ä',
  ])('is not made of %j', async (returnTo) => {
    const link = new URL('/signin', berth.info.base_url)
    link.searchParams.set('return_to', returnTo)
    const one = visitor()
    expect((await one.get(link.href)).text).toContain('name="return_to" value="/"')
    const answer = await one.post('/signin', { api_key: berth.info.api_key, return_to: returnTo })
    expect(answer.location).toBe('/')
    expect((await one.get(link.href)).location).toBe('/')
  })

  test.each(['/%2F/evil.example', '/%5Cevil.example', '/%09/evil.example', '/docs?next=//evil.example'])(
    '%j stays here',
    async (returnTo) => {
      const answer = await visitor().post('/signin', { api_key: berth.info.api_key, return_to: returnTo })
      const resolved = new URL(answer.location ?? '', berth.info.base_url)
      expect([resolved.origin, answer.location]).toEqual([berth.info.base_url, returnTo])
    },
  )
})

describe('a form that is not ours changes nothing', () => {
  const FORMS = [
    '/signout',
    '/access/keys/KEY/reveal',
    '/access/keys/KEY/delete',
    '/access/browsers/SESSION/signout',
    '/access/clients/x/revoke',
  ]
  const ATTACKS: [string, Record<string, string>, Record<string, string>][] = [
    ['without a token', {}, {}],
    ['with an empty token', { csrf: '' }, {}],
    ['with a made-up token', { csrf: 'A'.repeat(43) }, {}],
    ['with the token of another session', { csrf: 'OTHER' }, {}],
    ['from another origin', { csrf: 'OWN' }, { origin: 'http://evil.example' }],
    ['from another port', { csrf: 'OWN' }, { origin: 'http://127.0.0.1:1' }],
    ['from an origin that is not told', { csrf: 'OWN' }, { origin: 'null' }],
    ['from another site', { csrf: 'OWN' }, { 'sec-fetch-site': 'cross-site' }],
    ['from another port of this site', { csrf: 'OWN' }, { 'sec-fetch-site': 'same-site' }],
  ]
  test.each(ATTACKS)('%s', async (_name, fields, headers) => {
    const one = await Visitor.of(berth)
    const tokens: Record<string, string> = {
      OWN: await one.csrf(),
      OTHER: await (await Visitor.of(berth)).csrf(),
    }
    const { body: key } = await berth.call('POST', '/keys', { label: 'kept' })
    const page = (await one.get('/access')).text
    const session = /\/access\/browsers\/([^/]+)\/signout/.exec(page)?.[1] ?? ''
    const csrf = fields.csrf === undefined ? {} : { csrf: tokens[fields.csrf] ?? fields.csrf }
    for (const form of FORMS) {
      const path = form.replace('KEY', key.id).replace('SESSION', session)
      const answer = await one.post(path, csrf, headers)
      expect(answer.status).toBe(403)
      expect(answer.text).not.toContain(key.key)
    }
    expect(await isSignedIn(one)).toBe(true)
    expect((await berth.call('GET', '/keys')).body.keys.map(({ id }: { id: string }) => id)).toContain(key.id)
  })

  test('at the sign-in, so that nobody is signed in by the page of another', async () => {
    const one = visitor()
    for (const headers of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      const answer = await one.post('/signin', { api_key: berth.info.api_key }, headers as never)
      expect([answer.status, one.cookie]).toEqual([403, ''])
    }
  })

  test('by GET: what changes something does so by POST alone', async () => {
    const one = await Visitor.of(berth)
    for (const path of ['/signout', '/access/clients/x/revoke', '/access/browsers/x/signout'])
      expect((await one.get(path)).status).toBe(405)
    expect(await isSignedIn(one)).toBe(true)
  })

  test('sent as anything but a form, or larger than one', async () => {
    const one = await Visitor.of(berth)
    const csrf = await one.csrf()
    const json = { 'content-type': 'application/json' }
    expect((await one.post('/signout', { csrf }, json)).status).toBe(400)
    expect((await one.post('/signout', { csrf, more: 'x'.repeat(1_100_000) })).status).toBe(413)
    expect(await isSignedIn(one)).toBe(true)
  })
})

test.each(['/signin', '/signin/link/used', '/access', '/access/keys/none/delete'])(
  '%s stands in no frame, runs no script, loads from nowhere else and is stored nowhere',
  async (path) => {
    const { headers, text } = await (path === '/signin' ? visitor() : await Visitor.of(berth)).get(path)
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy.split('; ').sort()).toEqual([
      "base-uri 'none'",
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "style-src 'self'",
    ])
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('same-origin')
    expect(text).not.toMatch(/<script|style=|\son\w+=/)
  },
)

test('the file of sessions holds hashes alone, and only its owner reads it', async () => {
  const one = await Visitor.of(berth)
  const path = join(berth.dataDir, 'sessions.db')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const bytes = readFileSync(path)
  const secret = one.cookie.split('=')[1] ?? 'no cookie'
  expect(bytes.includes(new Bun.CryptoHasher('sha256').update(secret).digest())).toBe(true)
  expect(bytes.includes(secret)).toBe(false)
})

describe('behind a proxy that ends TLS', () => {
  const headersOf = (host: string, proto: string) => ({ host, 'x-forwarded-proto': proto })
  test.each([
    ['berth.test', 'https'],
    ['Berth.test:443', 'https'],
    ['berth.test', 'HTTPS, http'],
  ])('%s by %s is the public name with https, and its forms are its own', async (host, proto) => {
    await using other = await testBerth({ flags: { 'public-host': 'berth.test' } })
    const headers = headersOf(host, proto)
    const metadata = await other.fetch('/.well-known/oauth-authorization-server', { headers })
    expect(await metadata.json()).toMatchObject({ issuer: 'https://berth.test' })
    const answer = await other.fetch('/signin', {
      method: 'POST',
      redirect: 'manual',
      headers: { ...headers, origin: 'https://berth.test' },
      body: new URLSearchParams({ api_key: other.info.api_key }),
    })
    expect(answer.status).toBe(303)
    expect(answer.headers.get('set-cookie')).toMatch(/^berth_session_443=.*; Secure/)
  })

  test.each([
    ['localhost:80', 'https', 'http://localhost'],
    ['berth.test:80', 'http', 'http://berth.test'],
    ['berth.test', 'http, https', 'http://berth.test'],
    ['[::1]:81', 'https', 'http://[::1]:81'],
  ])('%s by %s is %s', async (host, proto, issuer) => {
    await using other = await testBerth({ flags: { 'public-host': 'berth.test' } })
    const metadata = await other.fetch('/.well-known/oauth-authorization-server', {
      headers: headersOf(host, proto),
    })
    expect(await metadata.json()).toMatchObject({ issuer })
  })
})
