import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { readEvents, type ServerEvent } from '../support/events.ts'
import { grantedTokens } from '../support/oauth.ts'
import { processesOf, until } from '../support/processes.ts'
import { TaskCalls } from '../support/tasks.ts'

const berth = await berthForTests()
const serverId = await berth.server()

/** A further key of the account. */
const newKey = async (): Promise<{ id: string; key: string }> =>
  (await berth.call('POST', '/keys', { label: 'streams' })).body

/** An event stream that has begun, asked for with a credential of one's own. */
async function begin(credential: string, path: string, body?: object): Promise<AsyncGenerator<ServerEvent>> {
  const response = await berth.fetch(path, {
    headers: {
      accept: 'text/event-stream',
      authorization: `Bearer ${credential}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
  })
  expect(response.status).toBe(200)
  return readEvents(response)
}

const rest = async (events: AsyncGenerator<ServerEvent>): Promise<ServerEvent[]> => Array.fromAsync(events)

const ENDED = {
  event: 'error',
  data: { error: 'missing_or_invalid_api_key', message: expect.stringContaining('was ended') },
}

describe('a stream ends with the credential that began it', () => {
  test('a deleted key: the command that it runs is ended', async () => {
    const { id, key } = await newKey()
    const events = await begin(key, `/servers/${serverId}/exec`, { command: 'echo go; sleep 7654' })
    await events.next()
    const runs = (): boolean => processesOf(berth.dataDir).some((line) => line.includes('sleep 7654'))
    await until(runs, 'the command runs')
    expect((await berth.call('DELETE', `/keys/${id}`)).status).toBe(200)
    expect(await rest(events)).toEqual([ENDED])
    await until(() => !runs(), 'the command is gone')
  })

  test('a key whose scope is changed: what it reaches now is asked for anew', async () => {
    const { id, key } = await newKey()
    const other = await berth.server()
    const tasks = new TaskCalls(berth, serverId)
    const path = `${tasks.path}/${await tasks.begin('ask: Which?')}/events`
    const events = await begin(key, path)
    await events.next()
    expect((await berth.call('PATCH', `/keys/${id}`, { allowed_server_ids: [other] })).status).toBe(200)
    expect((await rest(events)).at(-1)).toEqual(ENDED)
    const again = await berth.fetch(path, { headers: { authorization: `Bearer ${key}` } })
    expect(again.status).toBe(404)
  })

  test('an access token that is revoked', async () => {
    const { client, tokens, origin } = await grantedTokens(berth)
    const events = await begin(tokens.access_token, `/servers/${serverId}/exec`, {
      command: 'echo go; sleep 60',
    })
    await events.next()
    const body = new URLSearchParams({ token: tokens.access_token, client_id: client.client_id })
    expect((await fetch(`${origin}/oauth/revoke`, { method: 'POST', body })).status).toBe(200)
    expect(await rest(events)).toEqual([ENDED])
  })

  test('those of other keys go on', async () => {
    const [ending, staying] = [await newKey(), await newKey()]
    const events = await begin(staying.key, `/servers/${serverId}/exec`, {
      command: 'echo on; until [ -e ended ]; do sleep 0.02; done; echo still',
    })
    await events.next()
    await berth.call('DELETE', `/keys/${ending.id}`)
    await berth.exec(serverId, 'touch ended')
    expect(await rest(events)).toMatchObject([
      { event: 'stdout', data: { data: 'still\n' } },
      { event: 'exit', data: { exitCode: 0 } },
    ])
  })
})
