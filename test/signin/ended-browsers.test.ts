import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import {
  authorizePath,
  CALLBACK,
  consent,
  exchangeCode,
  grantedTokens,
  hiddenFields,
  registerClient,
  signedInBrowser,
  type TestBrowser,
} from '../support/oauth.ts'
import { Visitor } from '../support/visitor.ts'
import { decide, newChallenge, signInBrowser } from './browser-session.ts'

const berth = await berthForTests()
const origin = berth.info.base_url

const newKey = async (): Promise<{ id: string; key: string }> =>
  (await berth.call('POST', '/keys', { label: 'signs in' })).body

/** Ways in which a browser that was signed in by a key is signed in no more. */
const ENDS: [name: string, end: (cookie: string, keyId: string) => Promise<unknown>][] = [
  ['its sign-out', (cookie) => signOut(cookie)],
  ['the end of its key', (_, keyId) => berth.call('DELETE', `/keys/${keyId}`)],
]

async function signOut(cookie: string): Promise<void> {
  const visitor = new Visitor(origin)
  visitor.cookie = cookie
  expect((await visitor.submit('/signout')).status).toBe(303)
}

describe.each(ENDS)('what a browser approved opens nothing after %s', (_, end) => {
  test('the code of a terminal', async () => {
    const { id, key } = await newKey()
    const browser = await signInBrowser(origin, key)
    const { challenge, verifier } = newChallenge()
    const page = `/cli/authorize?${new URLSearchParams({ challenge, host: 'desk' })}`
    const shown = await (await decide(browser, page, 'approve')).text()
    const code = /id="code">([^<]+)</.exec(shown)?.[1] ?? ''
    await end(browser.cookie, id)
    const answer = await fetch(`${origin}/cli/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code, verifier }),
    })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('signed out')
  })

  test('the code of a program', async () => {
    const { id, key } = await newKey()
    const browser = await signedInBrowser(berth, { apiKey: key })
    const code = await codeFor(browser)
    await end(browser.cookie, id)
    const answer = await exchangeCode(code)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: 'invalid_grant' })
  })
})

/** A code that waits to be exchanged. */
async function codeFor(browser: TestBrowser, client?: Awaited<ReturnType<typeof registerClient>>) {
  const asking = client ?? (await registerClient(origin))
  const code = (await consent(browser, authorizePath(asking))).searchParams.get('code') ?? ''
  return { client: asking, code, redirectUri: CALLBACK, origin }
}

test('what is revoked on /access ends with the codes of the same program that wait', async () => {
  const browser = await signedInBrowser(berth)
  const { client } = await grantedTokens(berth, { browser })
  const waiting = await codeFor(browser, client)
  const page = await (await browser.send('/access')).text()
  const id = /\/access\/clients\/(\w+)\/revoke/.exec(page)?.[1]
  const body = new URLSearchParams({ csrf: hiddenFields(page).csrf ?? '' })
  expect((await browser.send(`/access/clients/${id}/revoke`, { method: 'POST', body })).status).toBe(303)
  expect((await exchangeCode(waiting)).status).toBe(400)
})

test('all other browsers of the account are signed out at once, and nobody else', async () => {
  const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
  const [one, other, ann] = [
    await Visitor.of(berth),
    await Visitor.of(berth),
    await Visitor.of(berth, account.id),
  ]
  const isSignedIn = async (visitor: Visitor) => (await visitor.get('/access')).status === 200
  expect((await ann.get('/access')).text).not.toContain('Sign out all other browsers')
  expect((await one.get('/access')).text).toContain('Sign out all other browsers')
  expect((await one.submit('/access/other-browsers/signout')).location).toBe(
    '/access?done=browsers-signed-out',
  )
  expect([await isSignedIn(one), await isSignedIn(other), await isSignedIn(ann)]).toEqual([true, false, true])
})

describe('a client that was let in is forgotten 30 days after its access has ended', () => {
  const known = async (clientId: string): Promise<boolean> => {
    const client = { client_id: clientId, redirect_uris: [CALLBACK] }
    const browser = await signedInBrowser(berth)
    return (await browser.send(authorizePath(client))).status === 200
  }
  const pass = (advance: string) => berth.control('POST', '/clock', { advance })

  test('by a revocation', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const body = new URLSearchParams({ token: tokens.refresh_token, client_id: client.client_id })
    await fetch(`${origin}/oauth/revoke`, { method: 'POST', body })
    await pass('719h')
    expect(await known(client.client_id)).toBe(true)
    await pass('2h')
    expect(await known(client.client_id)).toBe(false)
  })

  test.each([false, true])('by time (others come meanwhile: %p)', async (others) => {
    const { client } = await grantedTokens(berth)
    await pass('720h')
    if (others) await registerClient(origin)
    await pass('719h')
    expect(await known(client.client_id)).toBe(true)
    await pass('2h')
    expect(await known(client.client_id)).toBe(false)
  })

  test('by a code that nobody exchanged', async () => {
    const { client } = await codeFor(await signedInBrowser(berth))
    await pass('719h')
    expect(await known(client.client_id)).toBe(true)
    await pass('90m')
    expect(await known(client.client_id)).toBe(false)
  })
})
