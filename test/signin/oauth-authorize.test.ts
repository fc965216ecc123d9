import { beforeEach, describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import {
  accessToken,
  allowForm,
  authorizePath,
  CALLBACK,
  consent,
  exchangeCode,
  formOf,
  grantedTokens,
  hiddenFields,
  type RegisteredClient,
  registerClient,
  sentTo,
  signedInBrowser,
  TestBrowser,
} from '../support/oauth.ts'
import { archiveOf, ready } from '../support/projects.ts'
import { dumpTables } from '../support/state.ts'

const berth = await berthForTests()
const origin = berth.info.base_url
let client: RegisteredClient
let browser: TestBrowser
beforeEach(async () => {
  client = await registerClient(origin)
  browser = await signedInBrowser(berth)
})

const WEB = 'https://app.example/callback'

const grants = () => dumpTables(berth.dataDir).oauth_grants?.length ?? 0

const parameters = (given: Record<string, string | null>) => authorizePath(client, { parameters: given })

describe('consent', () => {
  test('of an app of a project says so: it is not a program of the person’s machine', async () => {
    const source = await archiveOf({ 'index.html': 'an app' })
    const project = await ready(berth, await berth.server(), { name: 'asks', visibility: 'public', source })
    const redirectUri = `${project.url}callback`
    const asking = await registerClient(origin, { client_name: 'Your editor', redirect_uris: [redirectUri] })
    const page = await browser.send(authorizePath(asking, { redirectUri }))
    const text = await page.text()
    expect(text).toContain(`the app of ${project.id} on one of your servers`)
    expect(text).not.toContain('a program on your machine')
    expect(await (await browser.send(parameters({}))).text()).toContain('a program on your machine')
  })

  test('a browser that is not signed in is sent to sign in, and comes back to what was asked', async () => {
    const stranger = new TestBrowser(origin)
    const path = parameters({ state: 'a b&c=d+e%20ü' })
    const toSignIn = sentTo(await stranger.send(path))
    expect(toSignIn).toMatchObject({ status: 303, to: `${origin}/signin` })
    const returnTo = toSignIn.parameters.return_to ?? ''
    const signedIn = await stranger.send(
      '/signin',
      formOf({ api_key: berth.info.api_key, return_to: returnTo }),
    )
    const location = signedIn.headers.get('location') ?? ''
    const back = await consent(stranger, location)
    expect(back.searchParams.get('state')).toBe('a b&c=d+e%20ü')
  })

  test('so it does with a backslash, which browsers leave as it is', async () => {
    const given = `${parameters({ state: null })}&state=a\\b`
    const returnTo = sentTo(await new TestBrowser(origin).send(given)).parameters.return_to ?? ''
    const signIn = formOf({ api_key: berth.info.api_key, return_to: returnTo })
    const stranger = new TestBrowser(origin)
    const location = (await stranger.send('/signin', signIn)).headers.get('location') ?? ''
    expect((await consent(stranger, location)).searchParams.get('state')).toBe('a\\b')
  })

  test('waits however many pages another account opens', async () => {
    const { body: other } = await berth.control('POST', '/accounts', { label: 'Other' })
    const flooding = await signedInBrowser(berth, { apiKey: other.api_key })
    const hidden = hiddenFields(await (await browser.send(authorizePath(client))).text())
    // One more than an account may have.
    for (let count = 0; count < 501; count += 3)
      await Promise.all([1, 2, 3].map(() => flooding.send(authorizePath(client))))
    expect((await browser.send('/oauth/authorize', allowForm(hidden))).status).toBe(303)
  }, 180_000)

  test('the page names the client, where its codes go, the account and the instance', async () => {
    const web = await registerClient(origin, { client_name: 'My <host>', redirect_uris: [WEB] })
    const page = await (await browser.send(authorizePath(web))).text()
    expect(page).toContain('My &lt;host&gt;')
    expect(page).toContain('<strong>app.example</strong>')
    expect(page).toContain('First account')
    expect(page).toContain(`<dt>Instance</dt><dd>${origin}</dd>`)
  })

  test.each([
    ['\u0421laude Code', 'Latin and Cyrillic'],
    ['Curs\u03bfr', 'Latin and Greek'],
    ['C1\u0430ude', 'Latin and Cyrillic'],
    ['Claude Code', null],
    ['Visual Studio \u041a\u043e\u0434', null],
    ['\u00c9diteur 2', null],
    ['\u30b3\u30fc\u30c9Code', null],
  ])('the name %j mixes %j', async (client_name, scripts) => {
    const asking = await registerClient(origin, { client_name })
    const page = await (await browser.send(authorizePath(asking))).text()
    expect(/This name mixes (.*) letters in one word/.exec(page)?.[1] ?? null).toBe(scripts)
  })

  test('another account may be used instead: it signs out, and comes back to the same request', async () => {
    const { body: other } = await berth.control('POST', '/accounts', { label: 'Other' })
    const path = parameters({ state: 'a b&c=d+e%20\u00fc', resource: `${origin}/mcp` })
    const before = grants()
    const page = await (await browser.send(path)).text()
    const hidden = hiddenFields(page)
    expect(page).toContain('>Use another account</button>')
    const forged = { ...hidden, csrf: 'x'.repeat(43), decision: 'switch' }
    expect((await browser.send('/oauth/authorize', formOf(forged))).status).toBe(403)
    const answer = await browser.send('/oauth/authorize', formOf({ ...hidden, decision: 'switch' }))
    expect(answer.headers.get('location')).toBe(path)
    expect(answer.headers.get('set-cookie')).toContain('Max-Age=0')
    const toSignIn = sentTo(await browser.send(path))
    expect(toSignIn.to).toBe(`${origin}/signin`)
    const signIn = formOf({ api_key: other.api_key, return_to: toSignIn.parameters.return_to ?? '' })
    const location = (await browser.send('/signin', signIn)).headers.get('location') ?? ''
    expect(await (await browser.send(location)).text()).toContain(other.id)
    expect(grants()).toBe(before)
    expect((await consent(browser, location)).searchParams.get('state')).toBe('a b&c=d+e%20\u00fc')
  })

  test('looking at the page grants nothing, and neither does asking for it again after a consent', async () => {
    await grantedTokens(berth, { client, browser })
    const before = grants()
    for (const prompt of [null, 'consent', 'select_account']) {
      const response = await browser.send(parameters({ prompt }))
      expect(response.status).toBe(200)
      expect(await response.text()).toContain('value="allow"')
    }
    expect(grants()).toBe(before)
  })

  test('no page may frame it, store it or load anything, and its form leads to itself, the client and where that sends on', async () => {
    const policyOf = async (uri: string) => {
      const asking = await registerClient(origin, { redirect_uris: [uri] })
      const { headers } = await browser.send(authorizePath(asking))
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('cache-control')).toBe('no-store')
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).toContain("default-src 'none'")
      return /form-action ([^;]*)/.exec(policy)?.[1]
    }
    expect(await policyOf(CALLBACK)).toBe("'self' http://127.0.0.1:33418 https:")
    expect(await policyOf('https://app.example/callback')).toBe("'self' https://app.example https:")
    expect(await policyOf('cursor://anysphere.cursor-mcp/oauth')).toBe("'self' cursor: https:")
    expect(await policyOf('http://[::1]:33418/callback')).toBe("'self' http: https:")
  })

  test('the code goes to the client with its state and issuer; without a state in the request it has none', async () => {
    expect(Object.fromEntries((await consent(browser, authorizePath(client))).searchParams)).toEqual({
      code: expect.stringMatching(/^berth_ac_/),
      state: 'a state',
      iss: origin,
    })
    const without = await consent(browser, parameters({ state: null }))
    expect([...without.searchParams.keys()]).toEqual(['code', 'iss'])
  })

  test('an address with a query, or of an app, is added to and otherwise left as it is', async () => {
    for (const uri of [
      'https://app.example?keep=%41',
      'cursor://anysphere.cursor-mcp/oauth',
      'com.example.app:/x',
    ]) {
      const asking = await registerClient(origin, { redirect_uris: [uri] })
      const hidden = hiddenFields(await (await browser.send(authorizePath(asking))).text())
      const answer = await browser.send('/oauth/authorize', allowForm(hidden))
      expect(answer.headers.get('location')).toStartWith(
        `${uri}${uri.includes('?') ? '&' : '?'}code=berth_ac_`,
      )
    }
  })

  test('a denial goes to the client, and grants nothing', async () => {
    const before = grants()
    const hidden = hiddenFields(await (await browser.send(authorizePath(client))).text())
    const answer = await browser.send('/oauth/authorize', formOf({ ...hidden, decision: 'deny' }))
    expect(sentTo(answer).parameters).toEqual({
      error: 'access_denied',
      error_description: expect.any(String),
      state: 'a state',
      iss: origin,
    })
    const after = await browser.send('/oauth/authorize', allowForm(hidden))
    expect(after.status).toBe(400)
    expect(grants()).toBe(before)
  })

  test('a choice of nothing, of both, or of a missing server is asked again, and may still be answered', async () => {
    const serverId = await berth.server()
    const before = grants()
    const hidden = hiddenFields(await (await browser.send(authorizePath(client))).text())
    const wrong: [string, string][][] = [
      [],
      [['access', 'chosen']],
      [
        ['access', 'all'],
        ['server', serverId],
      ],
      [
        ['access', 'chosen'],
        ['server', 'srv_00000000000000000000000000'],
      ],
    ]
    for (const fields of wrong) {
      const sent: [string, string][] = [...Object.entries(hidden), ...fields, ['decision', 'allow']]
      const response = await browser.send('/oauth/authorize', formOf(sent))
      expect(response.status).toBe(400)
      expect(await response.text()).toContain('role="alert"')
    }
    expect(grants()).toBe(before)
    const answer = await browser.send('/oauth/authorize', allowForm(hidden, { servers: [serverId] }))
    expect(sentTo(answer).parameters.code).toBeTruthy()
  })
})

describe('a form that the person did not send', () => {
  let hidden: Record<string, string>
  let before: number
  beforeEach(async () => {
    hidden = hiddenFields(await (await browser.send(authorizePath(client))).text())
    before = grants()
  })
  const isRefused = async (response: Response, status: number) => {
    expect({ status: response.status, location: response.headers.get('location') }).toEqual({
      status,
      location: null,
    })
    expect(grants()).toBe(before)
  }

  test.each<[string, (hidden: Record<string, string>) => Record<string, string>]>([
    ['without a token', ({ csrf, ...rest }) => rest],
    ['with a wrong token', (hidden) => ({ ...hidden, csrf: 'x'.repeat(43) })],
  ])('%s is refused', async (_what, change) => {
    await isRefused(await browser.send('/oauth/authorize', allowForm(change(hidden))), 403)
  })

  test('from a page of elsewhere is refused', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      await isRefused(await browser.send('/oauth/authorize', { ...allowForm(hidden), headers }), 403)
    }
  })

  test('with the handle of another session is refused', async () => {
    const other = await signedInBrowser(berth)
    const { csrf = '' } = hiddenFields(await (await other.send(authorizePath(client))).text())
    await isRefused(await other.send('/oauth/authorize', allowForm({ ...hidden, csrf })), 400)
  })

  test('without a handle, with an invented one, or for the second time is refused', async () => {
    const { handle, ...rest } = hidden
    await isRefused(await browser.send('/oauth/authorize', allowForm(rest)), 400)
    await isRefused(
      await browser.send('/oauth/authorize', allowForm({ ...rest, handle: 'x'.repeat(43) })),
      400,
    )
    expect((await browser.send('/oauth/authorize', allowForm(hidden))).status).toBe(303)
    before = grants()
    await isRefused(await browser.send('/oauth/authorize', allowForm(hidden)), 400)
  })

  test('that is too large is refused in words for a person', async () => {
    const large = formOf({ ...hidden, server: 'x'.repeat(1_100_000) })
    const answer = await browser.send('/oauth/authorize', large)
    const page = await answer.text()
    await isRefused(answer, 413)
    expect(page).toContain('larger than a form of these pages can be')
    expect(page).not.toContain('parts')
  })

  test('by a browser that is not signed in any more leads to the sign-in', async () => {
    const answer = await new TestBrowser(origin).send('/oauth/authorize', allowForm(hidden))
    expect(sentTo(answer)).toMatchObject({ status: 303, to: `${origin}/signin` })
    expect(grants()).toBe(before)
  })

  test('in the query of a GET grants nothing', async () => {
    const query = new URLSearchParams({ ...hidden, access: 'all', decision: 'allow' })
    expect((await browser.send(`${authorizePath(client)}&${query}`)).status).toBe(200)
    expect(grants()).toBe(before)
  })

  test('twelve times at once grants once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => browser.send('/oauth/authorize', allowForm(hidden))),
    )
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
    expect(grants()).toBe(before + 1)
  })

  test('after ten minutes grants nothing', async () => {
    await berth.control('POST', '/clock', { advance: '11m' })
    await isRefused(await browser.send('/oauth/authorize', allowForm(hidden)), 400)
  })
})

describe('what an account lets in', () => {
  test('another account can neither see it nor use it', async () => {
    const { body } = await berth.control('POST', '/accounts', {})
    const serverId = await berth.server()
    const token = await accessToken(berth, { apiKey: body.api_key })
    const response = await fetch(`${origin}/servers/${serverId}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(response.status).toBe(404)
  })

  test('its servers alone can be chosen', async () => {
    const { body } = await berth.control('POST', '/accounts', {})
    const foreign = await berth.server()
    const other = await signedInBrowser(berth, { apiKey: body.api_key })
    const page = await (await other.send(authorizePath(client))).text()
    expect(page).not.toContain(foreign)
    const answer = await other.send('/oauth/authorize', allowForm(hiddenFields(page), { servers: [foreign] }))
    expect(answer.status).toBe(400)
  })

  test('all ends with the account, codes that wait too', async () => {
    const { body } = await berth.control('POST', '/accounts', {})
    const { tokens } = await grantedTokens(berth, { apiKey: body.api_key })
    const other = await signedInBrowser(berth, { apiKey: body.api_key })
    const back = await consent(other, authorizePath(client))
    expect((await berth.control('DELETE', `/accounts/${body.id}`)).status).toBe(200)
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    expect((await fetch(`${origin}/servers`, { headers })).status).toBe(401)
    const code = back.searchParams.get('code') ?? ''
    const answer = await exchangeCode({ client, code, redirectUri: CALLBACK, origin })
    expect(answer.status).toBe(400)
  })
})
