import { beforeAll, describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import {
  askTokens,
  authorizationCode,
  exchangeCode,
  formOf,
  grantedTokens,
  type RegisteredClient,
  refreshTokens,
  registerClient,
  type TokenAnswer,
  VERIFIER,
  type WaitingCode,
} from '../support/oauth.ts'
import { dumpTables } from '../support/state.ts'

const berth = await berthForTests()
const origin = berth.info.base_url

/** The status of a call of the API with a token. */
const reach = async (token: string, at = origin): Promise<number> =>
  (await fetch(`${at}/servers`, { headers: { authorization: `Bearer ${token}` } })).status

const refusal = async (response: Response) => {
  const { error } = (await response.json()) as { error: string }
  return `${response.status} ${error}`
}

/** What a refusal says to the maker of the client. */
const said = async (response: Response) =>
  ((await response.json()) as { error_description: string }).error_description

const read = async (response: Response) => (await response.json()) as TokenAnswer

const pass = (advance: string) => berth.control('POST', '/clock', { advance })

describe('an exchange of a code', () => {
  test('gives an access token for an hour and a refresh token, and is never stored', async () => {
    const response = await exchangeCode(await authorizationCode(berth))
    expect(response.headers.get('cache-control')).toBe('no-store')
    const tokens = await read(response)
    expect(tokens).toEqual({
      access_token: expect.stringMatching(/^berth_at_[0-9A-Za-z]{43}$/),
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^berth_rt_[0-9A-Za-z]{43}$/),
      scope: 'offline_access',
    })
    expect(await reach(tokens.access_token)).toBe(200)
    expect(await reach(tokens.refresh_token)).toBe(401)
  })

  test('what was given out is kept as hashes alone, and is not logged', async () => {
    const { code, tokens } = await grantedTokens(berth)
    const kept = JSON.stringify(dumpTables(berth.dataDir)) + berth.log()
    for (const secret of [code, tokens.access_token, tokens.refresh_token]) {
      expect(kept).not.toContain(secret.slice('berth_at_'.length))
    }
  })

  test.each<[string, string | null, (waiting: WaitingCode) => Promise<Response>]>([
    ['after ten seconds', '11s', (waiting) => exchangeCode(waiting)],
    ['with another verifier', null, (waiting) => exchangeCode(waiting, { code_verifier: 'a'.repeat(43) })],
    ['without a verifier', null, (waiting) => exchangeCode(waiting, { code_verifier: '' })],
    [
      'by another client',
      null,
      async (waiting) => exchangeCode({ ...waiting, client: await registerClient(origin) }),
    ],
  ])('a second exchange of a code %s is refused, and what the first gave ends', async (_how, wait, again) => {
    const waiting = await authorizationCode(berth)
    const tokens = await read(await exchangeCode(waiting))
    if (wait) await pass(wait)
    expect(await refusal(await again(waiting))).toBe('400 invalid_grant')
    expect(await reach(tokens.access_token)).toBe(401)
    expect(await refusal(await refreshTokens(origin, waiting.client, tokens.refresh_token))).toBe(
      '400 invalid_grant',
    )
  })

  test('a second exchange by the same client within ten seconds is refused, and the access stays', async () => {
    const waiting = await authorizationCode(berth)
    const tokens = await read(await exchangeCode(waiting))
    expect(await refusal(await exchangeCode(waiting))).toBe('400 invalid_grant')
    expect(await reach(tokens.access_token)).toBe(200)
    expect((await refreshTokens(origin, waiting.client, tokens.refresh_token)).status).toBe(200)
  })

  test('of twelve exchanges at once exactly one succeeds', async () => {
    const waiting = await authorizationCode(berth)
    const answers = await Promise.all(Array.from({ length: 12 }, () => exchangeCode(waiting)))
    expect(answers.map(({ status }) => status).sort()).toEqual([
      200,
      ...Array.from({ length: 11 }, () => 400),
    ])
    const first = answers.find(({ status }) => status === 200) ?? new Response()
    expect(await reach((await read(first)).access_token)).toBe(200)
  })

  test('the code of another client is refused, and stays good for its own', async () => {
    const waiting = await authorizationCode(berth)
    const thief = await registerClient(origin)
    expect(await refusal(await exchangeCode({ ...waiting, client: thief }))).toBe('400 invalid_grant')
    expect((await exchangeCode(waiting)).status).toBe(200)
  })

  test.each<[string, Record<string, string>]>([
    ['no verifier', { code_verifier: '' }],
    ['another verifier', { code_verifier: 'a'.repeat(43) }],
    ['the challenge as verifier', { code_verifier: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' }],
    ['a verifier with more behind it', { code_verifier: `${VERIFIER}a` }],
    ['another redirect URI', { redirect_uri: 'http://127.0.0.1:33419/callback' }],
  ])('%s: refused, and the code is used up', async (_what, fields) => {
    const waiting = await authorizationCode(berth)
    expect(await refusal(await exchangeCode(waiting, fields))).toBe('400 invalid_grant')
    expect(await refusal(await exchangeCode(waiting))).toBe('400 invalid_grant')
  })

  test.each([
    ['', 'code_verifier is missing.'],
    [`${VERIFIER}+`, 'code_verifier must be 43 to 128 of the characters A-Z a-z 0-9 - . _ ~'],
    ['a'.repeat(43), 'code_verifier does not fit the code_challenge.'],
  ])('of the verifier %j it is said what is wrong, and not the verifier', async (code_verifier, words) => {
    expect(await said(await exchangeCode(await authorizationCode(berth), { code_verifier }))).toBe(words)
  })

  test('a form that is too large is refused with the limit', async () => {
    const answer = await askTokens(origin, { code: 'x'.repeat(20_000) })
    expect(answer.status).toBe(413)
    expect(await answer.json()).toEqual({
      error: 'invalid_request',
      error_description: 'The form is over the limit of 16384 bytes.',
    })
  })

  test('an unknown code is refused', async () => {
    const waiting = await authorizationCode(berth)
    expect(await refusal(await exchangeCode({ ...waiting, code: 'berth_ac_x' }))).toBe('400 invalid_grant')
  })

  test('a code is good for five minutes', async () => {
    const [early, late] = [await authorizationCode(berth), await authorizationCode(berth)]
    await pass('4m')
    expect((await exchangeCode(early)).status).toBe(200)
    await pass('1m')
    expect(await refusal(await exchangeCode(late))).toBe('400 invalid_grant')
  })

  test('malformed requests are refused as RFC 6749 says', async () => {
    const { client, code } = await authorizationCode(berth)
    const fields = { client_id: client.client_id, code, code_verifier: VERIFIER }
    expect(await refusal(await askTokens(origin, fields))).toBe('400 invalid_request')
    expect(await refusal(await askTokens(origin, { ...fields, grant_type: 'password' }))).toBe(
      '400 unsupported_grant_type',
    )
    const twice = formOf([...Object.entries({ ...fields, grant_type: 'authorization_code' }), ['code', code]])
    expect(await refusal(await fetch(`${origin}/oauth/token`, twice))).toBe('400 invalid_request')
    const json = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    }
    expect(await refusal(await fetch(`${origin}/oauth/token`, json))).toBe('400 invalid_request')
    const query = new URLSearchParams({ ...fields, grant_type: 'authorization_code' })
    expect(await refusal(await fetch(`${origin}/oauth/token?${query}`, formOf({ scope: 'x' })))).toBe(
      '401 invalid_client',
    )
  })
})

describe('a client that has a secret', () => {
  let client: RegisteredClient
  let waiting: WaitingCode
  const withBasic = (id: string, secret: string, fields: Record<string, string>) =>
    fetch(`${origin}/oauth/token`, {
      ...formOf(fields),
      headers: { authorization: `Basic ${btoa(`${id}:${secret}`)}` },
    })
  const fields = () => ({
    grant_type: 'authorization_code',
    code: waiting.code,
    code_verifier: VERIFIER,
    redirect_uri: waiting.redirectUri,
  })
  beforeAll(async () => {
    client = await registerClient(origin, { token_endpoint_auth_method: 'client_secret_basic' })
  })

  test('must show it, and the code is not used up where it does not', async () => {
    waiting = await authorizationCode(berth, { client })
    const { client_secret: _, ...bare } = client
    expect(await refusal(await exchangeCode({ ...waiting, client: bare }))).toBe('401 invalid_client')
    expect(await refusal(await exchangeCode(waiting, { client_secret: 'wrong' }))).toBe('401 invalid_client')
    const wrong = await withBasic(client.client_id, 'wrong', fields())
    expect(wrong.headers.get('www-authenticate')).toStartWith('Basic')
    expect(await refusal(wrong)).toBe('401 invalid_client')
    expect((await withBasic(client.client_id, client.client_secret ?? '', fields())).status).toBe(200)
  })

  test('may show it in the form too, but not in two ways at once', async () => {
    waiting = await authorizationCode(berth, { client })
    const both = await withBasic(client.client_id, client.client_secret ?? '', {
      ...fields(),
      client_secret: client.client_secret ?? '',
    })
    expect(await refusal(both)).toBe('400 invalid_request')
    expect((await exchangeCode(waiting)).status).toBe(200)
  })

  test.each(['client_secret_basic', 'client_secret_post'])(
    'as %s is told what is wrong with it, and in which ways it may come',
    async (method) => {
      const own = await registerClient(origin, { token_endpoint_auth_method: method })
      const asking = { grant_type: 'refresh_token', refresh_token: 'x' }
      const ways = 'The client has a secret. Send it by HTTP Basic, or in the form as client_secret.'
      const wrong = 'The secret is not that of the client.'
      expect(await said(await askTokens(origin, { ...asking, client_id: own.client_id }))).toBe(ways)
      const form = { ...asking, client_id: own.client_id, client_secret: 'wrong' }
      expect(await said(await askTokens(origin, form))).toBe(wrong)
      expect(await said(await withBasic(own.client_id, 'wrong', asking))).toBe(wrong)
      const right = { ...form, client_secret: own.client_secret ?? '' }
      expect(await refusal(await askTokens(origin, right))).toBe('400 invalid_grant')
      const basic = await withBasic(own.client_id, own.client_secret ?? '', asking)
      expect(await refusal(basic)).toBe('400 invalid_grant')
    },
  )

  test('that it does not have is refused with the remedy to leave it out', async () => {
    const { client_id } = await registerClient(origin)
    const form = { grant_type: 'refresh_token', refresh_token: 'x', client_id, client_secret: 'x' }
    expect(await said(await askTokens(origin, form))).toBe(
      'The client registered without a secret. Send only its client_id.',
    )
  })

  test('that is not known is 401', async () => {
    waiting = await authorizationCode(berth, { client })
    const unknown = { ...waiting, client: { client_id: 'client_x', redirect_uris: [] } }
    expect(await refusal(await exchangeCode(unknown))).toBe('401 invalid_client')
    expect(await refusal(await askTokens(origin, fields()))).toBe('401 invalid_client')
  })
})

describe('a refresh', () => {
  test('gives new tokens, which can be refreshed in turn', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const next = await read(await refreshTokens(origin, client, tokens.refresh_token))
    expect(next.refresh_token).not.toBe(tokens.refresh_token)
    expect(await reach(next.access_token)).toBe(200)
    expect((await refreshTokens(origin, client, next.refresh_token)).status).toBe(200)
  })

  test('of a token that was refreshed before ends the whole family', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const next = await read(await refreshTokens(origin, client, tokens.refresh_token))
    await pass('11s')
    expect(await refusal(await refreshTokens(origin, client, tokens.refresh_token))).toBe('400 invalid_grant')
    expect(await reach(next.access_token)).toBe(401)
    expect(await refusal(await refreshTokens(origin, client, next.refresh_token))).toBe('400 invalid_grant')
  })

  /** Refreshes one token several times at once. */
  const inParallel = async (client: RegisteredClient, token: string, times: number) => {
    const refreshing = Array.from({ length: times }, () => refreshTokens(origin, client, token))
    const answers = await Promise.all(refreshing)
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    return Promise.all(answers.map(read))
  }

  /** The number of tokens of each kind that the latest grant keeps. */
  const kept = () => {
    const { oauth_grants: grants, oauth_tokens: tokens } = dumpTables(berth.dataDir)
    const rows = tokens?.filter((row) => row.grant_id === grants?.at(-1)?.id) ?? []
    const refresh = rows.filter((row) => row.kind === 'refresh')
    const unused = refresh.filter((row) => row.replaced_at === null).length
    return { used: refresh.length - unused, unused, access: rows.length - refresh.length }
  }

  test('again and again keeps the last hundred tokens of each kind', async () => {
    const { client, tokens } = await grantedTokens(berth)
    let last = tokens
    for (let turn = 0; turn < 110; turn += 1) {
      last = await read(await refreshTokens(origin, client, last.refresh_token))
    }
    expect(kept()).toEqual({ used: 100, unused: 1, access: 100 })
    expect(await reach(last.access_token)).toBe(200)
  })

  test('of one token in parallel keeps the last hundred tokens of each kind', async () => {
    const { client, tokens } = await grantedTokens(berth)
    await inParallel(client, tokens.refresh_token, 110)
    expect(kept()).toEqual({ used: 1, unused: 100, access: 100 })
    const last = await read(await refreshTokens(origin, client, tokens.refresh_token))
    expect(await reach(last.access_token)).toBe(200)
    expect((await refreshTokens(origin, client, last.refresh_token)).status).toBe(200)
  })

  test('of one token in parallel gives each its own pair, and each pair can be refreshed on', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const pairs = await inParallel(client, tokens.refresh_token, 3)
    expect(new Set(pairs.flatMap((pair) => [pair.access_token, pair.refresh_token])).size).toBe(6)
    await pass('30m')
    for (const pair of pairs) {
      expect(await reach(pair.access_token)).toBe(200)
      const next = await read(await refreshTokens(origin, client, pair.refresh_token))
      expect(await reach(next.access_token)).toBe(200)
    }
  })

  test('whose response was lost can be repeated until ten seconds after the first use', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const frozen = await berth.control('POST', '/clock', { freeze: true })
    try {
      expect(frozen.status).toBe(200)
      const pairs = await inParallel(client, tokens.refresh_token, 1)
      await pass('6s')
      pairs.push(...(await inParallel(client, tokens.refresh_token, 1)))
      await pass('4s')
      pairs.push(...(await inParallel(client, tokens.refresh_token, 1)))
      await pass('1ms')
      // The ten seconds count from the first use, not from the last.
      const late = await refreshTokens(origin, client, tokens.refresh_token)
      expect(await refusal(late)).toBe('400 invalid_grant')
      for (const pair of pairs) {
        expect(await reach(pair.access_token)).toBe(401)
        expect(await refusal(await refreshTokens(origin, client, pair.refresh_token))).toBe(
          '400 invalid_grant',
        )
      }
    } finally {
      await berth.control('POST', '/clock', { freeze: false })
    }
  })

  test('by another client, or with an access token, is refused and ends nothing', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const thief = await registerClient(origin)
    expect(await refusal(await refreshTokens(origin, thief, tokens.refresh_token))).toBe('400 invalid_grant')
    expect(await refusal(await refreshTokens(origin, client, tokens.access_token))).toBe('400 invalid_grant')
    expect((await refreshTokens(origin, client, tokens.refresh_token)).status).toBe(200)
  })

  test('access tokens are good for an hour, refresh tokens for thirty days from their issue', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const idle = await grantedTokens(berth)
    await pass('59m')
    expect(await reach(tokens.access_token)).toBe(200)
    await pass('1m')
    expect(await reach(tokens.access_token)).toBe(401)
    await pass('29d')
    const next = await read(await refreshTokens(origin, client, tokens.refresh_token))
    await pass('1d')
    expect((await refreshTokens(origin, client, next.refresh_token)).status).toBe(200)
    expect(await refusal(await refreshTokens(origin, idle.client, idle.tokens.refresh_token))).toBe(
      '400 invalid_grant',
    )
  })

  test('removes what has expired', async () => {
    await grantedTokens(berth)
    await pass('40d')
    await grantedTokens(berth)
    const { oauth_tokens: tokens, oauth_codes: codes, oauth_grants: grants } = dumpTables(berth.dataDir)
    expect([tokens?.length, codes?.length, grants?.length]).toEqual([2, 1, 1])
  })
})

describe('what a token is for', () => {
  const localhost = () => origin.replace('127.0.0.1', 'localhost')

  test('is this instance, however it is written', async () => {
    for (const path of ['', '/', '/mcp', '/mcp/']) {
      const resource = `${origin}${path}`
      const waiting = await authorizationCode(berth, { parameters: { resource } })
      expect((await exchangeCode(waiting, { resource })).status).toBe(200)
    }
  })

  test('is nothing else: another resource is refused, and the code stays good', async () => {
    const waiting = await authorizationCode(berth)
    for (const resource of [
      'https://elsewhere.example/',
      `${origin}/servers`,
      `${origin}/mcp#x`,
      localhost(),
    ]) {
      expect(await refusal(await exchangeCode(waiting, { resource }))).toBe('400 invalid_target')
    }
    const tokens = await read(await exchangeCode(waiting))
    const fields = {
      grant_type: 'refresh_token',
      client_id: waiting.client.client_id,
      refresh_token: tokens.refresh_token,
    }
    const refreshed = await askTokens(origin, { ...fields, resource: 'https://elsewhere.example/' })
    expect(await refusal(refreshed)).toBe('400 invalid_target')
    expect((await askTokens(origin, fields)).status).toBe(200)
  })

  test('a token of one name of the instance is invalid under another', async () => {
    const { tokens } = await grantedTokens(berth, { origin: localhost() })
    expect(await reach(tokens.access_token, localhost())).toBe(200)
    expect(await reach(tokens.access_token)).toBe(401)
  })

  test('neither is a code or a refresh token', async () => {
    const waiting = await authorizationCode(berth, { origin: localhost() })
    expect(await refusal(await exchangeCode({ ...waiting, origin }))).toBe('400 invalid_grant')
    const tokens = await read(await exchangeCode(waiting))
    expect(await refusal(await refreshTokens(origin, waiting.client, tokens.refresh_token))).toBe(
      '400 invalid_grant',
    )
    expect((await refreshTokens(localhost(), waiting.client, tokens.refresh_token)).status).toBe(200)
  })
})

describe('a revocation', () => {
  const revoke = (client: RegisteredClient, token: string) =>
    fetch(`${origin}/oauth/revoke`, formOf({ client_id: client.client_id, token }))

  test.each(['access_token', 'refresh_token'] as const)('of the %s ends the access', async (kind) => {
    const { client, tokens } = await grantedTokens(berth)
    expect((await revoke(client, tokens[kind])).status).toBe(200)
    expect(await reach(tokens.access_token)).toBe(401)
    expect(await refusal(await refreshTokens(origin, client, tokens.refresh_token))).toBe('400 invalid_grant')
  })

  test('ends every pair that parallel refreshes gave', async () => {
    const { client, tokens } = await grantedTokens(berth)
    const refreshing = [1, 2, 3].map(() => refreshTokens(origin, client, tokens.refresh_token))
    const pairs = await Promise.all((await Promise.all(refreshing)).map(read))
    expect((await revoke(client, pairs[1]?.refresh_token ?? '')).status).toBe(200)
    for (const pair of [tokens, ...pairs]) {
      expect(await reach(pair.access_token)).toBe(401)
      expect(await refusal(await refreshTokens(origin, client, pair.refresh_token))).toBe('400 invalid_grant')
    }
  })

  test('of an unknown token, or of one that ended before, is done already', async () => {
    const { client, tokens } = await grantedTokens(berth)
    expect((await revoke(client, 'unknown')).status).toBe(200)
    expect((await revoke(client, tokens.access_token)).status).toBe(200)
    expect((await revoke(client, tokens.access_token)).status).toBe(200)
  })

  test.each(['access_token', 'refresh_token'] as const)(
    "of another client's %s is refused, and changes nothing",
    async (kind) => {
      const { client, tokens } = await grantedTokens(berth)
      const answer = await revoke(await registerClient(origin), tokens[kind])
      expect(answer.status).toBe(400)
      expect(await answer.json()).toEqual({
        error: 'invalid_grant',
        error_description: 'The token was issued to another client.',
      })
      expect(await reach(tokens.access_token)).toBe(200)
      expect((await refreshTokens(origin, client, tokens.refresh_token)).status).toBe(200)
    },
  )

  test('needs a client that is known', async () => {
    const { tokens } = await grantedTokens(berth)
    const unknown = { client_id: 'client_x', redirect_uris: [] }
    expect(await refusal(await revoke(unknown, tokens.refresh_token))).toBe('401 invalid_client')
    const nothing = fetch(
      `${origin}/oauth/revoke`,
      formOf({ client_id: (await registerClient(origin)).client_id }),
    )
    expect(await refusal(await nothing)).toBe('400 invalid_request')
  })
})
