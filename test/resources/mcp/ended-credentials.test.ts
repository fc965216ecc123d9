import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { grantedTokens } from '../../support/oauth.ts'
import { TaskCalls } from '../../support/tasks.ts'
import { connect, failureOf, type McpClient, type ToolResult } from './clients.ts'

const berth = await berthForTests()
const serverId = await berth.server()
const tasks = new TaskCalls(berth, serverId)

/** A call that has begun: something of it was told. */
async function begun(mcp: McpClient, name: string, given: object): Promise<{ result: Promise<ToolResult> }> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const result = mcp.call(name, given, { onprogress: resolve })
  await Promise.race([promise, result])
  return { result }
}

/** A task that is over when the file `name` is there, followed to its end by a call. */
async function following(mcp: McpClient, name: string) {
  const taskId = await tasks.begin(`run: until [ -e ${name} ]; do sleep 0.02; done\ncomplete: Done.`)
  return begun(mcp, 'tasks_events', { serverId, taskId, follow: true })
}

const refused = { error: 'missing_or_invalid_api_key', status: 401 }

describe('a credential that ends while its call is under way', () => {
  test('a token that expires serves the call to its end, and no other', async () => {
    const { tokens } = await grantedTokens(berth)
    await using mcp = await connect(berth, 'v2', tokens.access_token)
    const { result } = await following(mcp, 'expired')
    await berth.control('POST', '/clock', { advance: '2h' })
    // What others come and go with does away with what has expired, and changes nothing for this call.
    await grantedTokens(berth)
    const { body: other } = await berth.call('POST', '/keys', { label: 'other' })
    await berth.call('DELETE', `/keys/${other.id}`)
    await berth.exec(serverId, 'touch expired')
    expect((await result).structuredContent?.events.at(-1)).toMatchObject({ status: 'completed' })
    await expect(mcp.call('servers_list')).rejects.toThrow()
  })

  test('a deleted key is refused what it follows', async () => {
    const { id, key } = (await berth.call('POST', '/keys', { label: 'follows' })).body
    await using mcp = await connect(berth, 'v2', key)
    const { result } = await following(mcp, 'deleted')
    await berth.call('DELETE', `/keys/${id}`)
    expect(failureOf(await result)).toMatchObject(refused)
    await berth.exec(serverId, 'touch deleted')
  })

  test('a key whose scope is changed is not told that it is over', async () => {
    const { id, key } = (await berth.call('POST', '/keys', { label: 'narrowed' })).body
    await using mcp = await connect(berth, 'v2', key)
    const { result } = await following(mcp, 'narrowed')
    await berth.call('PATCH', `/keys/${id}`, { allowed_server_ids: [serverId] })
    expect(failureOf(await result)).toMatchObject(refused)
    await berth.exec(serverId, 'touch narrowed')
  })

  test('a deleted key has its command ended', async () => {
    const { id, key } = (await berth.call('POST', '/keys', { label: 'runs' })).body
    await using mcp = await connect(berth, 'v2', key)
    const { result } = await begun(mcp, 'exec_run', { serverId, command: 'echo go; sleep 60' })
    await berth.call('DELETE', `/keys/${id}`)
    expect(failureOf(await result)).toMatchObject(refused)
  })
})
