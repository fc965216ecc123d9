import { describe, expect, test } from 'bun:test'
import { headersOf, messageFor } from '../resources/mcp/raw.ts'
import { berthForTests } from '../support/berth.ts'
import { grantedTokens } from '../support/oauth.ts'
import { Visitor } from '../support/visitor.ts'

const berth = await berthForTests()
const serverId = await berth.server()

const newKey = async (): Promise<{ id: string; key: string }> =>
  (await berth.call('POST', '/keys', { label: 'slow' })).body

const labels = async (): Promise<string[]> =>
  (await berth.call('GET', '/keys')).body.keys.map(({ label }: { label: string }) => label)

/** A browser that is signed in, and the headers with which its session is a credential. */
async function signedIn(): Promise<{ browser: Visitor; headers: Record<string, string> }> {
  const browser = await Visitor.of(berth)
  return { browser, headers: { cookie: browser.cookie, 'x-berth-csrf': await browser.csrf() } }
}

/**
 * A request whose head has come, and of its body all but the last byte, which `rest` sends.
 *
 * @param credential a bearer token, or the headers of a session
 */
async function begin(
  credential: string | Record<string, string>,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<{ rest(): Promise<Response> }> {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const own = typeof credential === 'string' ? { authorization: `Bearer ${credential}` } : credential
  const answer = fetch(`${berth.info.base_url}${path}`, {
    method: 'POST',
    headers: { ...own, 'content-type': 'application/json', ...headers },
    body: readable,
  })
  await writer.write(bytes.subarray(0, -1))
  // Later requests have been answered: this one has come.
  for (let turn = 0; turn < 5; turn += 1) await berth.call('GET', '/servers')
  return {
    async rest() {
      await writer.write(bytes.subarray(-1))
      await writer.close()
      return answer
    },
  }
}

describe('a credential that ends while a body is on its way opens nothing', () => {
  test('a deleted key makes no further key', async () => {
    const { id, key } = await newKey()
    const slow = await begin(key, '/keys', { label: 'heir' })
    await berth.call('DELETE', `/keys/${id}`)
    expect((await slow.rest()).status).toBe(401)
    expect(await labels()).not.toContain('heir')
  })

  test('a deleted key begins no stream', async () => {
    const { id, key } = await newKey()
    const command = { command: 'echo go; sleep 60' }
    const slow = await begin(key, `/servers/${serverId}/exec`, command, { accept: 'text/event-stream' })
    await berth.call('DELETE', `/keys/${id}`)
    expect((await slow.rest()).status).toBe(401)
  })

  test('a key that reaches less now reaches no more than that', async () => {
    const { id, key } = await newKey()
    const other = await berth.server()
    const slow = await begin(key, `/servers/${serverId}/exec`, { command: 'touch reached' })
    await berth.call('PATCH', `/keys/${id}`, { allowed_server_ids: [other] })
    expect((await slow.rest()).status).toBe(404)
    expect((await berth.exec(serverId, 'test -e reached')).exitCode).toBe(1)
  })

  test('a deleted key is not told again what it did before', async () => {
    const { id, key } = await newKey()
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const first = await berth.fetch('/keys', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ label: 'told' }),
    })
    expect(first.status).toBe(201)
    const slow = await begin(key, '/keys', { label: 'told' }, headers)
    await berth.call('DELETE', `/keys/${id}`)
    const answer = await slow.rest()
    expect(answer.status).toBe(401)
    expect(await answer.text()).not.toContain('sk_live_')
  })

  test('a revoked access makes no key', async () => {
    const { client, tokens, origin } = await grantedTokens(berth)
    const slow = await begin(tokens.access_token, '/keys', { label: 'heir' })
    const body = new URLSearchParams({ token: tokens.access_token, client_id: client.client_id })
    await fetch(`${origin}/oauth/revoke`, { method: 'POST', body })
    expect((await slow.rest()).status).toBe(401)
    expect(await labels()).not.toContain('heir')
  })

  test('a browser that is signed out makes no key, nor an account', async () => {
    const { browser, headers } = await signedIn()
    const slow = [
      await begin(headers, '/keys', { label: 'heir' }),
      await begin(headers, '/_berth/accounts', { label: 'heir' }),
    ]
    await browser.submit('/signout')
    for (const one of slow) expect((await one.rest()).status).toBe(401)
    expect(await labels()).not.toContain('heir')
    const { body } = await berth.control('GET', '/accounts')
    expect(body.accounts.map(({ label }: { label: string }) => label)).not.toContain('heir')
  })

  test('neither by MCP', async () => {
    const { id, key } = await newKey()
    const params = { name: 'keys_create', arguments: { label: 'heir' } }
    const message = messageFor('tools/call', params)
    const slow = await begin(key, '/mcp', message, headersOf('tools/call', params))
    await berth.call('DELETE', `/keys/${id}`)
    expect((await slow.rest()).status).toBe(401)
    expect(await labels()).not.toContain('heir')
  })
})

test('a credential that stays is let in, however long its body takes and whichever others end', async () => {
  const [staying, going] = [await newKey(), await newKey()]
  const slow = await begin(staying.key, '/keys', { label: 'made' })
  await berth.call('DELETE', `/keys/${going.id}`)
  expect((await slow.rest()).status).toBe(201)
  expect(await labels()).toContain('made')
})

test('neither is a session refused for the changes of others, however many', async () => {
  const { headers } = await signedIn()
  const { id } = await newKey()
  const slow = await begin(headers, '/keys', { label: 'by a browser' })
  // More than berth remembers.
  for (let change = 0; change < 1_001; change += 1)
    await berth.call('PATCH', `/keys/${id}`, { allowed_server_ids: change % 2 === 0 ? [serverId] : [] })
  expect((await slow.rest()).status).toBe(201)
  expect(await labels()).toContain('by a browser')
}, 120_000)
