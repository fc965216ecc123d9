import { describe, expect, test } from 'bun:test'
import { berthForTests, testBerth } from '../support/berth.ts'
import { linkOf, Visitor } from '../support/visitor.ts'

const berth = await berthForTests()

const visitor = (): Visitor => new Visitor(berth.info.base_url)
const link = (accountId?: string, returnTo?: string) => linkOf(berth, accountId, returnTo)

describe('the link that the start prints', () => {
  test('signs one browser in to the first account, once, also after a reset', async () => {
    await using own = await testBerth()
    const { sign_in_url: url, base_url: origin } = own.info
    expect(url).toStartWith(`${origin}/signin/link/`)
    expect((await own.control('POST', '/reset')).status).toBe(200)
    const one = new Visitor(origin)
    const answer = await one.get(url)
    expect([answer.status, answer.location]).toEqual([303, '/'])
    expect((await one.get('/access')).text).toContain('First account')
    const other = new Visitor(origin)
    const again = await other.get(url)
    expect([again.status, other.cookie]).toEqual([410, ''])
    expect(again.text).toContain('berth open')
    // A person who follows the link in the terminal once more is signed in by it, and not sent for another.
    const twice = await one.get(url)
    expect([twice.status, (await one.get('/access')).status]).toEqual([410, 200])
    expect(twice.text).toContain('This browser is signed in already: <a href="/">')
  })

  test('is valid for an hour by the clock', async () => {
    await using own = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z' } })
    await own.control('POST', '/clock', { advance: '3600s' })
    const late = await new Visitor(own.info.base_url).get(own.info.sign_in_url)
    expect(late.status).toBe(410)
    await using other = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z' } })
    await other.control('POST', '/clock', { advance: '3599s' })
    expect((await new Visitor(other.info.base_url).get(other.info.sign_in_url)).status).toBe(303)
  })
})

describe('POST /_berth/sign-in-links', () => {
  test('makes a link to the account and the page that are named, at the address that was asked', async () => {
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
    const made = await berth.control('POST', '/sign-in-links', {
      account_id: account.id,
      return_to: '/docs?a=b',
    })
    expect(made.status).toBe(201)
    expect(Object.keys(made.body)).toEqual(['url', 'expires_at'])
    const ann = visitor()
    expect((await ann.get(made.body.url)).location).toBe('/docs?a=b')
    expect((await ann.get('/access')).text).toContain(account.id)
    const { port } = new URL(berth.info.base_url)
    const named = await fetch(`${berth.info.base_url}/_berth/sign-in-links`, {
      method: 'POST',
      headers: { host: `localhost:${port}`, authorization: `Bearer ${berth.info.admin_token}` },
    })
    expect(((await named.json()) as { url: string }).url).toStartWith(`http://localhost:${port}/signin/link/`)
  })

  test('its link is valid for five minutes', async () => {
    const url = await link()
    await berth.control('POST', '/clock', { advance: '299s' })
    const other = await link()
    expect((await visitor().get(url)).status).toBe(303)
    await berth.control('POST', '/clock', { advance: '300s' })
    expect((await visitor().get(other)).status).toBe(410)
  })

  test('refuses an account that is not there, and a page of elsewhere', async () => {
    expect((await berth.control('POST', '/sign-in-links', { account_id: 'acct_none' })).status).toBe(404)
    for (const page of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/\t/evil.example',
      'x',
    ]) {
      expect((await berth.control('POST', '/sign-in-links', { return_to: page })).status).toBe(400)
    }
  })

  test('takes the admin token alone, no key', async () => {
    expect((await berth.call('POST', '/_berth/sign-in-links')).status).toBe(401)
  })
})

describe('a link', () => {
  test('is used up by one of many browsers that open it at the same time', async () => {
    const url = await link()
    const answers = await Promise.all(Array.from({ length: 20 }, () => visitor().get(url)))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 410)).toHaveLength(19)
  })

  test.each([
    ['HEAD', { method: 'HEAD' }],
    ['Sec-Purpose: prefetch', { headers: { 'sec-purpose': 'prefetch;prerender' } }],
    ['Purpose: prefetch', { headers: { purpose: 'prefetch' } }],
    ['an image', { headers: { 'sec-fetch-dest': 'image' } }],
    ['a frame', { headers: { 'sec-fetch-dest': 'iframe' } }],
    ['a script', { headers: { 'sec-fetch-dest': 'empty' } }],
    ['POST', { method: 'POST' }],
  ])('is not used up, and signs nobody in, by %s', async (_name, init) => {
    const url = await link()
    const ahead = visitor()
    expect((await ahead.send(url, init)).status).toBeGreaterThanOrEqual(400)
    expect(ahead.cookie).toBe('')
    expect((await visitor().get(url)).status).toBe(303)
  })

  test('opens nothing where its account was deleted meanwhile', async () => {
    const { body: account } = await berth.control('POST', '/accounts')
    const url = await link(account.id)
    await berth.control('DELETE', `/accounts/${account.id}`)
    expect((await visitor().get(url)).status).toBe(410)
  })

  test('is guessed by nothing that looks like it', async () => {
    const secret = (await link()).split('/').at(-1) ?? ''
    expect(secret).toHaveLength(43)
    for (const guess of ['', 'x', secret.slice(1), `${secret}x`, `${secret.slice(0, -1)}%00`]) {
      expect((await visitor().get(`/signin/link/${guess}`)).status).toBeGreaterThanOrEqual(400)
    }
  })

  test('leaves its secret in no log, no journal and no file', async () => {
    await using own = await testBerth({ flags: { 'log-level': 'debug' } })
    const { base_url: origin, sign_in_url: printed } = own.info
    const urls = [printed, await linkOf(own), await linkOf(own)]
    const secrets = urls.map((url) => url.split('/').at(-1) ?? '')
    await new Visitor(origin).get(urls[1] ?? '')
    await new Visitor(origin).get(urls[1] ?? '')
    for (const secret of secrets) {
      for (const path of ['/signin/link/*/', '//signin/link/*', '/x/..//signin/link/*']) {
        await fetch(`${origin}${path.replace('*', secret)}`)
      }
      await fetch(`${origin}/signin/link/${secret}`, { method: 'DELETE' })
    }
    const { body } = await own.control('GET', '/requests')
    const files = [...new Bun.Glob('**/*').scanSync({ cwd: own.dataDir, absolute: true, dot: true })]
    const texts = await Promise.all(files.map((file) => Bun.file(file).text()))
    expect(files.length).toBeGreaterThan(3)
    const log = await own.wholeLog()
    expect(log).toContain('/signin/link/…')
    for (const secret of secrets) {
      expect(log).not.toContain(secret)
      expect(JSON.stringify(body)).not.toContain(secret)
      expect(texts.filter((text) => text.includes(secret))).toEqual([])
    }
  })
})

describe('when the sign-in is at another address than that of "berth open"', () => {
  const elsewhere = (): Visitor => new Visitor(berth.info.base_url.replace('127.0.0.1', 'localhost'))
  const asked = '/signin?return_to=%2Foauth%2Fauthorize%3Fx'

  test('it does not send people round in circles, but names that and the way by a key', async () => {
    const { text } = await elsewhere().get(asked)
    expect(text).toContain(`You are at <strong>${elsewhere().origin}</strong>`)
    expect(text).not.toContain('go on here')
    const refused = await elsewhere().post('/signin', { api_key: 'sk_live_wrong' })
    expect(refused.text).toContain(`You are at <strong>${elsewhere().origin}</strong>`)
    const one = elsewhere()
    const letIn = await one.post('/signin', { api_key: berth.info.api_key, return_to: '/access' })
    expect(letIn.location).toBe('/access')
  })

  test('at its own address it offers the command', async () => {
    const { text } = await new Visitor(berth.info.base_url).get(asked)
    expect(text).toContain('go on here')
    expect(text).not.toContain('You are at')
  })
})
