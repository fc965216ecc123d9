import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { accessToken, authorizationCode, grantedTokens, signedInBrowser } from '../support/oauth.ts'
import { dumpTables } from '../support/state.ts'

const berth = await berthForTests()
const origin = berth.info.base_url
const chosen = await berth.server({ task: 'chosen' })
const other = await berth.server({ task: 'other' })
const made = [chosen, chosen, other].map((id) => berth.call('POST', `/servers/${id}/projects`, {}))
const projects = (await Promise.all(made)).map(({ body }) => body.id)

const call = async (token: string, method: string, path: string, body?: object) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${origin}${path}`, {
    method,
    headers,
    body: body ? JSON.stringify(body) : null,
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return { status: response.status, body: (await response.json()) as any }
}

const ids = (list: { id: string }[]) => list.map(({ id }) => id).sort()

describe('a token', () => {
  test('for the whole account does what an account-wide key does', async () => {
    const token = await accessToken(berth)
    const { body } = await call(token, 'POST', '/servers', { task: 'made by a program' })
    expect((await call(token, 'GET', `/servers/${body.id}`)).status).toBe(200)
    expect((await call(token, 'DELETE', `/servers/${body.id}`)).status).toBe(200)
    expect((await call(token, 'GET', '/keys')).status).toBe(200)
  })

  test('for chosen servers does what a key for them does: other servers are not there, account-level work is refused', async () => {
    const token = await accessToken(berth, { servers: [chosen] })
    const key = (await berth.call('POST', '/keys', { label: 'same', allowed_server_ids: [chosen] })).body.key
    const calls: [string, string, object?][] = [
      ['GET', '/servers'],
      ['GET', `/servers/${chosen}`],
      ['GET', `/servers/${other}`],
      ['POST', `/servers/${chosen}/exec`, { command: 'echo hi' }],
      ['POST', `/servers/${other}/exec`, { command: 'echo hi' }],
      ['GET', '/projects'],
      ['GET', `/projects/${projects[0]}`],
      ['GET', `/projects/${projects[2]}`],
      ['POST', '/servers', {}],
      ['GET', '/keys'],
      ['POST', '/webhooks', { url: 'https://example.com/' }],
      ['GET', '/templates'],
    ]
    // What a server has used grows with time.
    await berth.control('POST', '/clock', { freeze: true })
    const seen: number[] = []
    for (const [method, path, body] of calls) {
      const [byToken, byKey] = [await call(token, method, path, body), await call(key, method, path, body)]
      expect({ method, path, ...byToken }).toEqual({ method, path, ...byKey })
      seen.push(byToken.status)
    }
    await berth.control('POST', '/clock', { reset: true })
    expect(seen).toEqual([200, 200, 404, 200, 404, 200, 200, 404, 403, 403, 403, 200])
    expect(ids((await call(token, 'GET', '/servers')).body.servers)).toEqual([chosen])
  })

  test('for chosen projects reaches these and their servers, and no others', async () => {
    const [project = '', sibling = ''] = projects
    const token = await accessToken(berth, { projects: [project] })
    expect(ids((await call(token, 'GET', '/projects')).body.projects)).toEqual([project])
    expect((await call(token, 'GET', `/projects/${sibling}`)).status).toBe(404)
    expect(ids((await call(token, 'GET', '/servers')).body.servers)).toEqual([chosen])
    expect((await call(token, 'GET', `/servers/${other}`)).status).toBe(404)
  })

  test('for a server that goes reaches nothing then, and not everything', async () => {
    const short = await berth.server()
    const token = await accessToken(berth, { servers: [short] })
    await berth.call('DELETE', `/servers/${short}`)
    expect((await call(token, 'GET', '/servers')).body).toEqual({ servers: [] })
    expect((await call(token, 'POST', '/servers', {})).status).toBe(403)
  })

  test('is refused by the control API, as keys are', async () => {
    const response = await fetch(`${origin}/_berth/accounts`, {
      headers: { authorization: `Bearer ${await accessToken(berth)}` },
    })
    expect(response.status).toBe(401)
  })

  test('keeps what a later consent says: the client has what was chosen last', async () => {
    const browser = await signedInBrowser(berth)
    const first = await grantedTokens(berth, { browser })
    const second = await grantedTokens(berth, { browser, client: first.client, servers: [chosen] })
    expect((await call(first.tokens.access_token, 'GET', '/servers')).status).toBe(401)
    expect(ids((await call(second.tokens.access_token, 'GET', '/servers')).body.servers)).toEqual([chosen])
    const ofClient = dumpTables(berth.dataDir).oauth_grants?.filter(
      (row) => row.client_id === first.client.client_id,
    )
    expect(ofClient).toHaveLength(1)
  })

  test('stays what it is while another consent of its client waits for its code to be exchanged', async () => {
    const browser = await signedInBrowser(berth)
    const { client, tokens } = await grantedTokens(berth, { browser })
    await authorizationCode(berth, { browser, client })
    expect((await call(tokens.access_token, 'GET', '/servers')).status).toBe(200)
  })
})

describe('a 401 of the API', () => {
  test('says which scheme it takes, and whether a credential was wrong', async () => {
    const challenge = async (headers: Record<string, string>) => {
      const response = await fetch(`${origin}/servers`, { headers })
      return [response.status, response.headers.get('www-authenticate')]
    }
    expect(await challenge({})).toEqual([401, 'Bearer'])
    expect(await challenge({ authorization: 'Bearer berth_at_x' })).toEqual([
      401,
      'Bearer error="invalid_token"',
    ])
  })
})
