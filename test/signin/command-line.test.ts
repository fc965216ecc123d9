import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { archiveOf, ready } from '../support/projects.ts'
import { decide, hiddenFields, newChallenge, signInBrowser } from './browser-session.ts'

const berth = await berthForTests({ flags: { 'log-level': 'debug' } })
const browser = await signInBrowser(berth.info.base_url, berth.info.api_key)

/** The address of the page that asks. */
const pageOf = (given: Record<string, string>): string => `/cli/authorize?${new URLSearchParams(given)}`

const exchange = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${berth.info.base_url}/cli/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

/** A code that the page shows to be typed in. */
async function typedCode(challenge: string, more: Record<string, string> = {}): Promise<string> {
  const shown = await decide(browser, pageOf({ challenge, host: 'desk', ...more }), 'approve')
  return /id="code">([^<]+)</.exec(await shown.text())?.[1] ?? ''
}

/** As berth's clock has it. */
const advance = (by: string) => berth.control('POST', '/clock', { advance: by })

const keysOf = async (): Promise<{ id: string; label: string }[]> =>
  (await berth.call('GET', '/keys')).body.keys

describe('the page that asks', () => {
  test('names the machine, the account, the key and what it may do', async () => {
    const { challenge, state } = newChallenge()
    const page = await browser.get(pageOf({ challenge, state, redirect_port: '4000', host: 'desk.example' }))
    expect(page.status).toBe(200)
    const text = await page.text()
    expect(text).toContain('<strong><bdi>desk.example</bdi></strong>')
    expect(text).toContain('First account')
    expect(text).toContain('<dd><bdi>CLI on desk.example</bdi></dd>')
    expect(text).toContain('everything that this account may')
    expect(text).toMatch(/<button name="decision" value="approve">Approve</)
    expect(text).toMatch(/<button name="decision" value="deny"[^>]*>Deny</)
  })

  test('lets its form lead only to the terminal that asked, and cannot be framed', async () => {
    const { challenge, state } = newChallenge()
    const policy = async (given: Record<string, string>) =>
      (await browser.get(pageOf(given))).headers.get('content-security-policy') ?? ''
    const listening = await policy({ challenge, state, redirect_port: '4000', host: 'desk' })
    expect(listening).toContain("form-action 'self' http://127.0.0.1:4000;")
    expect(listening).toContain("frame-ancestors 'none'")
    expect(await policy({ challenge, host: 'desk' })).toContain("form-action 'self';")
  })

  test('sends a browser that is not signed in to do so, and back', async () => {
    const path = pageOf({ challenge: newChallenge().challenge, host: 'desk' })
    const answer = await fetch(`${berth.info.base_url}${path}`, { redirect: 'manual' })
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toBe(`/signin?${new URLSearchParams({ return_to: path })}`)
  })

  test('shows the name of a machine as text, bounded, whatever it is made of', async () => {
    const { challenge } = newChallenge()
    const host = `<script>alert(1)</script>"'\u202e\u0007${'x'.repeat(5_000)}`
    const text = await (await browser.get(pageOf({ challenge, host }))).text()
    expect(text).not.toContain('<script')
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;xxx')
    for (const unseen of ['\u202e', '\u0007', 'x'.repeat(100)]) expect(text).not.toContain(unseen)
  })

  test('keeps a name from turning the text around it, and from being none', async () => {
    const { challenge } = newChallenge()
    const text = await (await browser.get(pageOf({ challenge, host: 'שולחן', label: 'מפתח' }))).text()
    expect(text).toContain('<bdi>שולחן</bdi>, as it says itself')
    expect(text).toContain('<bdi>מפתח</bdi>')
    const unseen = await (await browser.get(pageOf({ challenge, host: '\u3164\u2800' }))).text()
    expect(unseen).toContain('an unnamed machine')
  })

  test('cuts a label to forty characters, of a long name to its first part', async () => {
    const labelOf = async (given: Record<string, string>) => {
      const page = await browser.get(pageOf({ challenge: newChallenge().challenge, ...given }))
      return hiddenFields(await page.text()).label ?? ''
    }
    expect(await labelOf({ host: `desk.${'sub.'.repeat(20)}example` })).toBe('CLI on desk')
    const cut = await labelOf({ host: '😀'.repeat(60) })
    expect(Array.from(cut)).toHaveLength(40)
    expect(cut).toEndWith('😀…')
    expect(await labelOf({ host: 'desk', label: 'my laptop' })).toBe('my laptop')
    expect(await labelOf({})).toBe('CLI on an unnamed machine')
  })

  const ODD: [name: string, given: Record<string, string>][] = [
    ['no challenge', { challenge: '' }],
    ['a challenge that is none', { challenge: 'short' }],
    ['no state', { state: '' }],
    ['a state that is easily guessed', { state: 'x' }],
    ['another host behind the port', { redirect_port: '80@evil.example' }],
    ['a path behind the port', { redirect_port: '80/../x' }],
    ['a line break behind the port', { redirect_port: '80\r\nset-cookie: x=1' }],
    ['a source of the policy behind the port', { redirect_port: '80 https://evil.example' }],
    ['a port that is none', { redirect_port: '65536' }],
    ['port 0', { redirect_port: '0' }],
    ['a port written otherwise', { redirect_port: '0x50' }],
    ['an empty port', { redirect_port: '' }],
  ]
  test.each(ODD)('refuses %s, on the page and in its form, and leads nowhere', async (_name, odd) => {
    const { challenge, state } = newChallenge()
    const good = { challenge, state, redirect_port: '4000', host: 'desk' }
    const page = await browser.get(pageOf({ ...good, ...odd }))
    expect(page.status).toBe(400)
    expect(page.headers.get('location')).toBeNull()
    const { csrf = '' } = hiddenFields(await (await browser.get(pageOf(good))).text())
    for (const decision of ['approve', 'deny']) {
      const sent = await browser.post('/cli/authorize', { ...good, ...odd, csrf, decision })
      expect({ status: sent.status, location: sent.headers.get('location') }).toEqual({
        status: 400,
        location: null,
      })
    }
  })
})

test('an app gets no code at its own port, whatever machine it says it is', async () => {
  const source = await archiveOf({ 'index.html': 'an app' })
  const project = await ready(berth, await berth.server(), { name: 'asks', visibility: 'public', source })
  const { challenge, state } = newChallenge()
  const asked = { challenge, state, redirect_port: new URL(project.url ?? '').port, host: 'desk' }
  const page = await browser.get(pageOf(asked))
  expect([page.status, await page.text()]).toEqual([400, expect.stringContaining(project.id)])
  const { csrf = '' } = hiddenFields(
    await (await browser.get(pageOf({ ...asked, redirect_port: '4000' }))).text(),
  )
  for (const decision of ['approve', 'deny']) {
    const sent = await browser.post('/cli/authorize', { ...asked, csrf, decision })
    expect([sent.status, sent.headers.get('location')]).toEqual([400, null])
  }
  await berth.call('PATCH', `/projects/${project.id}`, { visibility: 'private' })
  expect((await browser.get(pageOf(asked))).status).toBe(200)
})

describe('approving', () => {
  test('leads to 127.0.0.1 and the port that was given, with a code and the state', async () => {
    const { challenge, state, verifier } = newChallenge()
    const sent = await decide(
      browser,
      pageOf({ challenge, state, redirect_port: '4000', host: 'desk' }),
      'approve',
    )
    expect(sent.status).toBe(303)
    expect(sent.headers.get('cache-control')).toBe('no-store')
    const target = new URL(sent.headers.get('location') ?? '')
    expect(`${target.origin}${target.pathname}`).toBe('http://127.0.0.1:4000/callback')
    expect(target.searchParams.get('state')).toBe(state)
    const answer = await exchange({ code: target.searchParams.get('code'), verifier })
    expect(answer.status).toBe(201)
  })

  test('gives an ordinary account-wide key, under the label that was shown', async () => {
    const { challenge, verifier } = newChallenge()
    const code = await typedCode(challenge)
    const answer = await exchange({ code, verifier })
    expect({ status: answer.status, cache: answer.headers.get('cache-control') }).toEqual({
      status: 201,
      cache: 'no-store',
    })
    const made = (await answer.json()) as Record<string, string>
    expect(made).toMatchObject({ label: 'CLI on desk', allowed_server_ids: [], allowed_project_ids: [] })
    expect(made.account_id).toMatch(/^acct_/)
    const used = await fetch(`${berth.info.base_url}/keys`, {
      headers: { authorization: `Bearer ${made.key}` },
    })
    const { keys } = (await used.json()) as { keys: { id: string }[] }
    expect(keys.map(({ id }) => id)).toContain(made.id ?? '')
    expect((await berth.call('DELETE', `/keys/${made.id}`)).status).toBe(200)
  })

  test('a code may be typed in any case, without dashes, and with letters that look alike', async () => {
    const { challenge, verifier } = newChallenge()
    const code = await typedCode(challenge)
    expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/)
    const typed = ` ${code.toLowerCase().replaceAll('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l')}`
    expect((await exchange({ code: typed, verifier })).status).toBe(201)
  })

  test('a GET gives no code, whatever it says', async () => {
    const { challenge, state } = newChallenge()
    const good = { challenge, state, redirect_port: '4000', host: 'desk' }
    const { csrf = '' } = hiddenFields(await (await browser.get(pageOf(good))).text())
    for (const more of [{ decision: 'approve' }, { decision: 'approve', csrf }]) {
      const page = await browser.get(pageOf({ ...good, ...more }))
      expect({ status: page.status, location: page.headers.get('location') }).toEqual({
        status: 200,
        location: null,
      })
      expect(await page.text()).not.toContain('id="code"')
    }
  })

  test('a form that is not of the session’s own page gives no code', async () => {
    const { challenge, state } = newChallenge()
    const form = { challenge, state, redirect_port: '4000', host: 'desk', decision: 'approve' }
    const other = await signInBrowser(berth.info.base_url, berth.info.api_key)
    const { csrf: foreign = '' } = hiddenFields(await (await other.get(pageOf(form))).text())
    const { csrf = '' } = hiddenFields(await (await browser.get(pageOf(form))).text())
    const attempts: [Record<string, string>, Record<string, string>][] = [
      [form, {}],
      [{ ...form, csrf: foreign }, {}],
      [{ ...form, csrf }, { origin: 'http://127.0.0.1:1' }],
      [{ ...form, csrf }, { origin: 'null' }],
      [{ ...form, csrf }, { 'sec-fetch-site': 'same-site' }],
    ]
    for (const [fields, headers] of attempts) {
      const sent = await browser.post('/cli/authorize', fields, headers)
      expect({ status: sent.status, location: sent.headers.get('location') }).toEqual({
        status: 403,
        location: null,
      })
    }
    expect((await browser.post('/cli/authorize', { ...form, csrf })).status).toBe(303)
  })

  test('denying reports that to the terminal, and issues no code', async () => {
    const { challenge, state } = newChallenge()
    const told = await decide(
      browser,
      pageOf({ challenge, state, redirect_port: '4000', host: 'desk' }),
      'deny',
    )
    expect(told.headers.get('location')).toBe(
      `http://127.0.0.1:4000/callback?error=access_denied&state=${state}`,
    )
    const shown = await decide(browser, pageOf({ challenge, host: 'desk' }), 'deny')
    expect(shown.status).toBe(200)
    expect(await shown.text()).toContain('gets no key')
  })
})

describe('exchanging a code', () => {
  test('works once', async () => {
    const { challenge, verifier } = newChallenge()
    const code = await typedCode(challenge)
    const before = (await keysOf()).length
    const answers = await Promise.all(Array.from({ length: 4 }, () => exchange({ code, verifier })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400])
    expect(await keysOf()).toHaveLength(before + 1)
    await advance('2m')
  })

  test('with the verifier of another terminal uses the code up', async () => {
    const { challenge, verifier } = newChallenge()
    const code = await typedCode(challenge)
    const stolen = await exchange({ code, verifier: newChallenge().verifier })
    expect(stolen.status).toBe(400)
    expect((await exchange({ code, verifier })).status).toBe(400)
    await advance('2m')
  })

  test('with the challenge in place of the verifier gives nothing', async () => {
    const { challenge } = newChallenge()
    expect((await exchange({ code: await typedCode(challenge), verifier: challenge })).status).toBe(400)
    await advance('2m')
  })

  test('is over after two minutes of the clock', async () => {
    const [early, late] = [newChallenge(), newChallenge()]
    await berth.control('POST', '/clock', { freeze: true })
    const codes = [await typedCode(early.challenge), await typedCode(late.challenge)] as const
    await advance('119s')
    expect((await exchange({ code: codes[0], verifier: early.verifier })).status).toBe(201)
    await advance('1s')
    expect((await exchange({ code: codes[1], verifier: late.verifier })).status).toBe(400)
    await berth.control('POST', '/clock', { freeze: false })
    await advance('2m')
  })

  test('is refused for a while once too many wrong codes came, a right one too', async () => {
    const { challenge, verifier } = newChallenge()
    await berth.control('POST', '/clock', { freeze: true })
    const wrong = () => exchange({ code: 'AAAA-BBBB-CCCC', verifier })
    const statuses: number[] = []
    for (let count = 0; count < 11; count += 1) statuses.push((await wrong()).status)
    expect(statuses).toEqual([...Array<number>(10).fill(400), 429])
    const code = await typedCode(challenge)
    const refused = await exchange({ code, verifier })
    expect({ status: refused.status, after: refused.headers.get('retry-after') }).toEqual({
      status: 429,
      after: '60',
    })
    expect(await refused.json()).toMatchObject({ error: 'too_many_requests' })
    await advance('59s')
    expect((await exchange({ code, verifier })).status).toBe(429)
    await advance('1s')
    expect((await exchange({ code, verifier })).status).toBe(201)
    await berth.control('POST', '/clock', { freeze: false })
  })

  test('goes on for a terminal while others guess, whose wrong codes are refused for a while', async () => {
    const { challenge, verifier } = newChallenge()
    await berth.control('POST', '/clock', { freeze: true })
    const code = await typedCode(challenge)
    const wrong = () => exchange({ code: 'AAAA-BBBB-CCCC', verifier: newChallenge().verifier })
    const statuses: number[] = []
    for (let count = 0; count < 12; count += 1) statuses.push((await wrong()).status)
    expect(statuses).toEqual([...Array<number>(10).fill(400), 429, 429])
    expect((await exchange({ code, verifier })).status).toBe(201)
    await advance('60s')
    expect((await wrong()).status).toBe(400)
    await berth.control('POST', '/clock', { freeze: false })
    await advance('2m')
  })

  test('works however many codes another account has', async () => {
    const { challenge, verifier } = newChallenge()
    const code = await typedCode(challenge)
    const { body: other } = await berth.control('POST', '/accounts', { label: 'Other' })
    const flooding = await signInBrowser(berth.info.base_url, other.api_key)
    const page = pageOf({ challenge: newChallenge().challenge, host: 'desk' })
    const form = hiddenFields(await (await flooding.get(page)).text())
    // One more than an account may have.
    for (let count = 0; count < 501; count += 3) {
      const approve = () => flooding.post('/cli/authorize', { ...form, decision: 'approve' })
      for (const { status } of await Promise.all([approve(), approve(), approve()])) expect(status).toBe(200)
    }
    expect((await exchange({ code, verifier })).status).toBe(201)
  }, 180_000)

  test('refuses pages of elsewhere, and leaves the code to its terminal', async () => {
    const { challenge, verifier } = newChallenge()
    const code = await typedCode(challenge)
    for (const headers of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      const refused = await exchange({ code, verifier }, headers)
      expect({ status: refused.status, body: await refused.json() }).toMatchObject({
        status: 403,
        body: { error: 'forbidden' },
      })
    }
    expect((await exchange({ code, verifier })).status).toBe(201)
  })

  test('refuses a Host header of elsewhere', async () => {
    const refused = await exchange(
      { code: 'x', verifier: newChallenge().verifier },
      { host: 'rebound.example' },
    )
    expect(refused.status).toBe(403)
  })

  test('takes a JSON object of code and verifier and nothing else', async () => {
    const { verifier } = newChallenge()
    const code = 'AAAA-BBBB-CCCC'
    for (const body of [
      {},
      { code },
      { code, verifier: 'short' },
      { code, verifier, more: 1 },
      { code: 1, verifier },
      [],
    ]) {
      const refused = await exchange(body)
      expect({
        status: refused.status,
        cache: refused.headers.get('cache-control'),
        body: await refused.json(),
      }).toMatchObject({ status: 400, cache: 'no-store', body: { error: 'bad_request' } })
    }
    expect((await exchange({ code, verifier }, { 'content-type': 'text/plain' })).status).toBe(400)
    const { base_url } = berth.info
    expect((await fetch(`${base_url}/cli/token`, { method: 'POST' })).status).toBe(400)
    expect((await fetch(`${base_url}/cli/token?code=${code}&verifier=${verifier}`)).status).toBe(405)
  })
})

test('neither code nor key is logged, and the journal keeps nothing of a sign-in', async () => {
  const { challenge, verifier } = newChallenge()
  const code = await typedCode(challenge)
  const { key } = (await (await exchange({ code, verifier })).json()) as { key: string }
  const log = await berth.wholeLog()
  expect(log).toContain('/cli/token')
  expect(log).not.toContain(key)
  expect(log).not.toContain(code)
  const { body } = await berth.control('GET', '/requests')
  expect(JSON.stringify(body)).not.toContain('/cli/')
})
