import { beforeEach, describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import {
  authorizePath,
  CALLBACK,
  consent,
  formOf,
  hiddenFields,
  type RegisteredClient,
  registerClient,
  sentTo,
  signedInBrowser,
  TestBrowser,
} from '../support/oauth.ts'
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

describe('a request for access that names no usable client or address', () => {
  test.each<[string, () => string | Promise<string>]>([
    ['no client', () => parameters({ client_id: null })],
    ['an unknown client', () => parameters({ client_id: 'client_00000000000000000000000000' })],
    ['an address that was not registered', () => parameters({ redirect_uri: 'https://evil.example/' })],
    ['a prefix of the address', () => parameters({ redirect_uri: CALLBACK.slice(0, -1) })],
    ['more behind the address', () => parameters({ redirect_uri: `${CALLBACK}/../evil` })],
    ['a query behind the address', () => parameters({ redirect_uri: `${CALLBACK}?x` })],
    [
      'another host of the machine',
      () => parameters({ redirect_uri: CALLBACK.replace('127.0.0.1', 'localhost') }),
    ],
    ['a port that is none', () => parameters({ redirect_uri: CALLBACK.replace('33418', '99999') })],
    ['credentials before the host', () => parameters({ redirect_uri: CALLBACK.replace('//', '//evil@') })],
    ['its id twice', () => `${authorizePath(client)}&client_id=${client.client_id}`],
    ['its address twice', () => `${authorizePath(client)}&redirect_uri=https%3A%2F%2Fevil.example`],
    [
      'another port on a host of the web',
      async () => {
        const web = await registerClient(origin, { redirect_uris: [WEB] })
        return authorizePath(web, { redirectUri: WEB.replace('.example', '.example:8443') })
      },
    ],
    [
      'none of several addresses',
      async () =>
        authorizePath(await registerClient(origin, { redirect_uris: [WEB, CALLBACK] }), {
          parameters: { redirect_uri: null },
        }),
    ],
  ])('%s: a page says so, and the browser is sent nowhere', async (_what, path) => {
    const response = await browser.send(await path())
    expect({ status: response.status, location: response.headers.get('location') }).toEqual({
      status: 400,
      location: null,
    })
    expect(response.headers.get('content-type')).toContain('text/html')
    expect(await response.text()).toContain('Nothing was granted')
  })

  test('the one address of a client may be left out', async () => {
    expect((await consent(browser, parameters({ redirect_uri: null }))).origin).toBe(new URL(CALLBACK).origin)
  })

  test('the case of scheme and host is free on this machine, that of the path is not', async () => {
    const loud = await registerClient(origin, { redirect_uris: ['HTTP://LOCALHOST/Cb'] })
    const back = await consent(browser, authorizePath(loud, { redirectUri: 'http://localhost:50123/Cb' }))
    expect(`${back.host}${back.pathname}`).toBe('localhost:50123/Cb')
    const wrong = await browser.send(authorizePath(loud, { redirectUri: 'http://localhost:50123/cb' }))
    expect([wrong.status, wrong.headers.get('location')]).toEqual([400, null])
    const fault = { redirectUri: 'HTTP://LOCALHOST/Cb', parameters: { response_type: null } }
    expect((await browser.send(authorizePath(loud, fault))).status).toBe(303)
  })

  test('the port of a program on this machine is free', async () => {
    const redirectUri = CALLBACK.replace('33418', '50123')
    const back = await consent(browser, authorizePath(client, { redirectUri }))
    expect(back.host).toBe('127.0.0.1:50123')
  })
})

describe('a request for access that the client got wrong', () => {
  test.each<[Record<string, string | null>, string]>([
    [{ response_type: null }, 'invalid_request'],
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_mode: 'fragment' }, 'invalid_request'],
    [{ code_challenge: null }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ code_challenge: `${'a'.repeat(42)}=` }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge_method: null }, 'invalid_request'],
    [{ resource: 'https://elsewhere.example/mcp' }, 'invalid_target'],
    [{ resource: 'not a URL' }, 'invalid_target'],
    [{ request: 'e30.e30.' }, 'request_not_supported'],
    [{ request: 'e30.e30.', response_type: null, code_challenge: null }, 'request_not_supported'],
    [{ request_uri: 'https://app.example/request' }, 'request_uri_not_supported'],
    [{ prompt: 'none' }, 'interaction_required'],
  ])('%j: the client learns %s, with its state and from whom', async (given, error) => {
    const before = grants()
    expect(sentTo(await browser.send(parameters(given)))).toEqual({
      status: 303,
      to: CALLBACK,
      parameters: { error, error_description: expect.any(String), state: 'a state', iss: origin },
    })
    expect(grants()).toBe(before)
  })

  test.each([
    [WEB, 'app.example'],
    ['https://localhost/callback', 'localhost'],
    ['cursor://evil/x?y=%41', 'cursor:'],
    ['com.example.app:/x', 'com.example.app:'],
  ])('at %s: the person learns it, and goes there by a click alone', async (uri, place) => {
    const elsewhere = await registerClient(origin, { client_name: 'A <b>', redirect_uris: [uri] })
    for (const given of [{ response_type: 'token' }, { prompt: 'none' }]) {
      const before = grants()
      const answer = await browser.send(authorizePath(elsewhere, { parameters: given }))
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
      expect(answer.headers.get('refresh')).toBeNull()
      const page = await answer.text()
      expect(page).toContain('A &lt;b&gt;')
      expect(page).toContain(given.prompt ? 'A person is asked each time.' : 'response_type must be code.')
      expect(page).toContain(`<strong>${place}</strong>`)
      const link = (/<a [^>]*href="([^"]*)"[^>]*>Go back/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&')
      expect(link).toStartWith(`${uri}${uri.includes('?') ? '&' : '?'}`)
      const { searchParams } = new URL(link)
      searchParams.delete('y')
      expect(Object.fromEntries(searchParams)).toEqual({
        error: given.prompt ? 'interaction_required' : 'unsupported_response_type',
        error_description: expect.any(String),
        state: 'a state',
        iss: origin,
      })
      expect(grants()).toBe(before)
    }
  })

  test('a denial is the own act of a person, and goes to the web at once', async () => {
    const web = await registerClient(origin, { redirect_uris: [WEB] })
    const hidden = hiddenFields(await (await browser.send(authorizePath(web))).text())
    const answer = await browser.send('/oauth/authorize', formOf({ ...hidden, decision: 'deny' }))
    expect(sentTo(answer)).toMatchObject({ status: 303, to: WEB, parameters: { error: 'access_denied' } })
  })

  test('a client that wants no page gets none on this machine, signed in or not', async () => {
    const answer = await new TestBrowser(origin).send(parameters({ prompt: 'none' }))
    expect(sentTo(answer)).toMatchObject({
      status: 303,
      to: CALLBACK,
      parameters: { error: 'interaction_required', state: 'a state' },
    })
  })

  test('nobody is sent to an address that anybody can register before they are signed in', async () => {
    const path = parameters({ response_type: 'token' })
    expect(sentTo(await new TestBrowser(origin).send(path))).toEqual({
      status: 303,
      to: `${origin}/signin`,
      parameters: { return_to: path },
    })
  })

  test('a repeated parameter is refused; a repeated state comes back in none of its forms', async () => {
    const twice = await browser.send(`${authorizePath(client)}&code_challenge=${'b'.repeat(43)}`)
    expect(sentTo(twice).parameters).toMatchObject({ error: 'invalid_request', state: 'a state' })
    const state = sentTo(await browser.send(`${authorizePath(client)}&state=other`)).parameters
    expect(state).toMatchObject({ error: 'invalid_request' })
    expect(state).not.toHaveProperty('state')
  })
})
