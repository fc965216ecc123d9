import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../support/berth.ts'
import {
  accessToken,
  allowForm,
  authorizePath,
  CALLBACK,
  exchangeCode,
  grantedTokens,
  hiddenFields,
  type RegisteredClient,
  refreshTokens,
  registerClient,
  signedInBrowser,
} from '../support/oauth.ts'
import { dumpTables } from '../support/state.ts'

describe('registration of clients', () => {
  let berth: TestBerth
  beforeAll(async () => {
    berth = await testBerth()
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  const register = (
    body: unknown,
    headers: Record<string, string> = { 'content-type': 'application/json' },
  ) =>
    fetch(`${berth.info.base_url}/oauth/register`, {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  test.each([
    'https://app.example/callback?x=1',
    'https://vscode.dev/redirect',
    'http://127.0.0.1:33418',
    'http://127.0.0.1/callback',
    'http://[::1]:8080/callback',
    'http://localhost:6274/oauth/callback',
    'cursor://anysphere.cursor-mcp/oauth/callback',
    'vscode://vscode.github-authentication/did-authenticate',
    'com.example.app:/oauth',
    'HTTP://127.0.0.1/cb',
    'http://LOCALHOST:8080/Cb',
    'HTTPS://App.Example/cb',
  ])('takes %s', async (uri) => {
    const response = await register({ redirect_uris: [uri], token_endpoint_auth_method: 'none' })
    expect(response.status).toBe(201)
    expect(await response.json()).toMatchObject({ redirect_uris: [uri], client_id: expect.any(String) })
  })

  test.each([
    'javascript:alert(1)',
    'HTTP://app.example/callback',
    'HTTP://127.0.0.1.app.example/callback',
    'javascript://%0aalert(1)',
    'JavaScript://x/%0aalert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:msgbox(1)',
    'file:///etc/passwd',
    'blob:http://127.0.0.1/x',
    'about:blank',
    'view-source:https://app.example/',
    'ms-msdt:/id',
    'http://app.example/callback',
    'http://127.0.0.1.app.example/callback',
    'http://localhost.app.example/callback',
    'http://localhost@app.example/callback',
    'http://127.1/callback',
    'http://10.0.0.1/callback',
    'https://user:secret@app.example/callback',
    'https://user@app.example/callback',
    'https://app.example/callback#part',
    'https://app.example/callback#',
    "https://a;script-src'none'/callback",
    'https://a,b/callback',
    'https://*.example/callback',
    'https://app.example/callback?code=mine',
    'https://app.example/callback?x=1&%73tate=mine',
    'http://127.0.0.1/callback?iss=https://elsewhere.example',
    'cursor://app/callback?error=x',
    'https:app.example',
    'https:///app.example',
    '//app.example/callback',
    '/callback',
    'https://app.example/\\evil',
    'https://app.example/a b',
    ' https://app.example/',
    'https://app.example/\n',
    'https://ａpp.example/',
    'mailto:someone@app.example',
    '',
    `https://app.example/${'a'.repeat(1_000)}`,
  ])('refuses %j', async (uri) => {
    const response = await register({ redirect_uris: ['https://app.example/', uri] })
    expect(response.status).toBe(400)
    const body = await response.json()
    expect(body).toEqual({ error: 'invalid_redirect_uri', error_description: expect.any(String) })
    // The characters that RFC 6749 (5.2) allows there.
    expect((body as { error_description: string }).error_description).toMatch(
      /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/,
    )
  })

  test.each([
    ['', 'The redirect URI is empty.'],
    [
      'javascript:alert(1)',
      'The redirect URI javascript:alert(1) is no address: expected https://..., http://127.0.0.1/... or the own scheme of an app, as in com.example.app:/...',
    ],
    [
      'HTTP://app.example/cb',
      'The redirect URI HTTP://app.example/cb is http, which only 127.0.0.1, [::1] and localhost may be.',
    ],
  ])('says of %j what is wrong', async (uri, description) => {
    const response = await register({ redirect_uris: [uri] })
    expect(((await response.json()) as { error_description: string }).error_description).toStartWith(
      description,
    )
  })

  test.each([
    [{}, 'invalid_redirect_uri'],
    [{ redirect_uris: [] }, 'invalid_redirect_uri'],
    [{ redirect_uris: 'https://app.example/' }, 'invalid_redirect_uri'],
    [{ redirect_uris: [5] }, 'invalid_redirect_uri'],
    [
      { redirect_uris: Array.from({ length: 21 }, (_, n) => `https://app.example/${n}`) },
      'invalid_redirect_uri',
    ],
    [
      { redirect_uris: ['https://app.example/'], token_endpoint_auth_method: 'private_key_jwt' },
      'invalid_client_metadata',
    ],
    [{ redirect_uris: ['https://app.example/'], grant_types: ['implicit'] }, 'invalid_client_metadata'],
    [{ grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
    [{ redirect_uris: ['https://app.example/'], response_types: ['token'] }, 'invalid_client_metadata'],
    [{ redirect_uris: ['https://app.example/'], client_name: 5 }, 'invalid_client_metadata'],
    [{ redirect_uris: ['https://app.example/'], client_name: 'n'.repeat(101) }, 'invalid_client_metadata'],
  ])('refuses %j with %s', async (body, error) => {
    const response = await register(body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error })
  })

  test.each([
    ['\u3164\u3164', ''],
    ['\u2800 \u115f', ''],
    ['a\u3164\u200bb', 'ab'],
    ['a\n \u2003b', 'a b'],
    [`x${'\u0301'.repeat(90)}y`, 'x\u0301\u0301\u0301y'],
    ['नमस्ते', 'नमस्ते'],
  ])('the name %j is kept as what is seen of it, %j', async (client_name, shown) => {
    const response = await register({ redirect_uris: ['https://app.example/'], client_name })
    expect(await response.json()).toMatchObject({ client_name: shown })
  })

  test('as many redirect URIs as may be, each as long as may be, are taken', async () => {
    const long = `https://app.example/${'x'.repeat(976)}`
    const redirect_uris = Array.from({ length: 20 }, (_, n) => `${long}${n}`.padEnd(1_000, 'y'))
    expect((await register({ redirect_uris })).status).toBe(201)
  })

  test('bodies that are too large, no JSON or of another type are refused', async () => {
    const large = await register({ redirect_uris: ['https://app.example/'], software_id: 'x'.repeat(70_000) })
    expect(large.status).toBe(413)
    expect(await large.json()).toEqual({
      error: 'invalid_request',
      error_description: 'The registration is over the limit of 65536 bytes.',
    })
    expect((await register('{')).status).toBe(400)
    expect((await register('[]')).status).toBe(400)
    expect((await register('')).status).toBe(400)
    expect(
      (await register({ redirect_uris: ['https://app.example/'] }, { 'content-type': 'text/plain' })).status,
    ).toBe(400)
  })

  test('a client that names no way to show who it is gets a secret, which is shown once and kept as its hash', async () => {
    const response = await register({ redirect_uris: ['https://app.example/'] })
    expect(response.headers.get('cache-control')).toBe('no-store')
    const client = (await response.json()) as Record<string, string>
    expect(client).toMatchObject({
      token_endpoint_auth_method: 'client_secret_basic',
      client_secret_expires_at: 0,
    })
    const secret = client.client_secret ?? ''
    expect(secret).toMatch(/^berth_cs_[0-9A-Za-z]{43}$/)
    expect(JSON.stringify(dumpTables(berth.dataDir))).not.toContain(secret.slice('berth_cs_'.length))
    expect(berth.log()).not.toContain(secret)
  })

  test('what a client calls itself is shown as text, without what turns writing around', async () => {
    const client = await registerClient(berth.info.base_url, {
      client_name: '<script>alert(1)</script>"\u202e\u0000 x',
    })
    const browser = await signedInBrowser(berth)
    const page = await (await browser.send(authorizePath(client))).text()
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot; x')
    expect(page).not.toContain('<script')
    expect(page).not.toContain('\u202e')
  })

  test('a registration that nobody lets in is gone after a day, one that somebody let in is not', async () => {
    await using other = await testBerth()
    const origin = other.info.base_url
    const forgotten = await registerClient(origin)
    const { client, tokens } = await grantedTokens(other)
    await other.control('POST', '/clock', { advance: '25h' })
    const browser = await signedInBrowser(other)
    const page = await browser.send(authorizePath(forgotten))
    expect({ status: page.status, location: page.headers.get('location') }).toEqual({
      status: 400,
      location: null,
    })
    expect((await refreshTokens(origin, client, tokens.refresh_token)).status).toBe(200)
    expect(dumpTables(other.dataDir).oauth_clients).toHaveLength(1)
  })

  describe('a host that kept its registration looks whether it still counts, before it opens a browser', () => {
    const look = (client: RegisteredClient, accept = 'application/json') =>
      fetch(`${berth.info.base_url}${authorizePath(client)}`, { headers: { accept }, redirect: 'manual' })
    const unknown = { client_id: 'client_00000000000000000000000000', redirect_uris: [CALLBACK] }

    test('one that does not count is a problem it can read, so that it registers again', async () => {
      const response = await look(unknown)
      expect({ status: response.status, body: await response.json() }).toEqual({
        status: 400,
        body: { error: 'invalid_client', error_description: expect.stringContaining('Register it again') },
      })
    })

    test('one that counts leads to the sign-in, as for a browser', async () => {
      const response = await look(await registerClient(berth.info.base_url))
      expect(response.status).toBe(303)
      expect(response.headers.get('location')).toStartWith('/signin?')
    })

    test.each(['text/html,application/json;q=0.9', '*/*'])('what takes %s gets the page', async (accept) => {
      const response = await look(unknown, accept)
      expect(response.status).toBe(400)
      expect(response.headers.get('content-type')).toContain('text/html')
    })
  })
})

/** Three times as many as may be kept. */
const REGISTRATIONS = 3_000

describe(`${REGISTRATIONS} registrations in a row`, () => {
  test('neither fill the disk nor push out a client that was let in or is about to be', async () => {
    await using berth = await testBerth()
    const origin = berth.info.base_url
    const letIn = await grantedTokens(berth)
    const browser = await signedInBrowser(berth)
    const asking = await registerClient(origin)
    const page = await (await browser.send(authorizePath(asking))).text()
    const name = 'n'.repeat(100)
    const redirect_uris = Array.from({ length: 10 }, (_, n) => `https://app.example/${n}${'a'.repeat(900)}`)
    const worker = async () => {
      for (let n = 0; n < REGISTRATIONS / 8; n++)
        await registerClient(origin, { client_name: name, redirect_uris })
    }
    await Promise.all(Array.from({ length: 8 }, worker))

    expect(dumpTables(berth.dataDir).oauth_clients?.length).toBeLessThanOrEqual(1_000)
    const bytes = ['berth.db', 'berth.db-wal'].map((file) => statSync(join(berth.dataDir, file)).size)
    // Each takes some 10 KB.
    expect(bytes.reduce((a, b) => a + b)).toBeLessThan(REGISTRATIONS * 6_500)

    const back = await browser.send('/oauth/authorize', allowForm(hiddenFields(page)))
    const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? ''
    const redirectUri = asking.redirect_uris[0] ?? ''
    expect((await exchangeCode({ client: asking, code, redirectUri, origin })).status).toBe(200)
    expect((await refreshTokens(origin, letIn.client, letIn.tokens.refresh_token)).status).toBe(200)
    expect(await accessToken(berth)).toBeTruthy()
  }, 120_000)
})
