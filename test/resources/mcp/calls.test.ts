import { afterAll, beforeAll, describe, expect, jest, test } from 'bun:test'
import { Progress } from '../../../src/resources/mcp/progress.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { CLIENTS, connect, failureOf, type McpClient } from './clients.ts'
import { META, messageOf, send } from './raw.ts'

let berth: TestBerth
let server: string
let mcp: McpClient
beforeAll(async () => {
  berth = await testBerth()
  server = await berth.server()
  mcp = await connect(berth, 'v2')
})
afterAll(async () => {
  await mcp[Symbol.asyncDispose]()
  await berth[Symbol.asyncDispose]()
})

const isThere = async (path: string) =>
  (await berth.call('GET', `/servers/${server}/files?path=${path}`)).status === 200
const touch = (path: string) => berth.call('PUT', `/servers/${server}/files`, { path, content: '' })

describe('progress', () => {
  const told = async (name: string, given: object) => {
    const messages: string[] = []
    const result = await mcp.call(name, given, { onprogress: ({ message }) => messages.push(message ?? '') })
    return { result, messages }
  }

  test.each([
    ['bytes that are no UTF-8', 'printf "a\\377\\376b"; printf "\\303" >&2'],
    [
      'characters cut in two',
      'printf "\\303"; sleep 0.05; printf "\\274\\360\\237"; sleep 0.05; printf "\\230\\200"',
    ],
    ['a byte order mark', 'printf "\\357\\273\\277x"'],
    ['nothing', 'exit 7'],
    ['more than is kept', 'head -c 11000000 /dev/zero | tr "\\0" x; head -c 3 /dev/zero >&2'],
    ['exactly as much as is kept', 'head -c 10485760 /dev/zero | tr "\\0" y'],
    ['a timeout', 'echo a; sleep 30'],
  ])('the result of a command that prints %s is the plain one', async (_, command) => {
    const given = { serverId: server, command, ...(command.includes('sleep 30') ? { timeoutMs: 2_000 } : {}) }
    const plain = await mcp.call('exec_run', given)
    const { result } = await told('exec_run', given)
    // A result that is cut has the id of an execution, which is another each time.
    const of = ({ structuredContent: { executionId: _, ...rest } }: typeof result) => rest
    expect(of(result)).toEqual(of(plain))
  })

  test('a flood of output is sent in few notices of bounded length', async () => {
    const command = 'head -c 20000000 /dev/zero | tr "\\0" x'
    const { messages } = await told('exec_run', { serverId: server, command })
    expect(messages.length).toBeGreaterThan(0)
    expect(messages.length).toBeLessThan(200)
    for (const message of messages) expect(message.length).toBeLessThan(17 * 1024)
  })

  test('a failure before anything runs is the plain one', async () => {
    const given = { serverId: 'srv_none', command: 'true' }
    const { result } = await told('exec_run', given)
    expect(failureOf(result)).toEqual(failureOf(await mcp.call('exec_run', given)))
  })

  test('a build is followed to its end', async () => {
    const goal = 'fail: Not today.'
    const { build_id: buildId } = (await mcp.call('builds_create', { serverId: server, goal }))
      .structuredContent
    const { result, messages } = await told('builds_logs', { serverId: server, buildId, follow: true })
    const { build } = (await mcp.call('builds_get', { serverId: server, buildId })).structuredContent
    expect(build.status).toBe('completed')
    const plain = await mcp.call('builds_logs', { serverId: server, buildId })
    expect(result.structuredContent).toEqual(plain.structuredContent)
    expect(messages.join('')).toContain('Not today.')
  })

  test('what has no end, or is not to be followed, answers at once, though a client asks for progress', async () => {
    const project = (await mcp.call('projects_create', { serverId: server })).structuredContent
    const logs = await told('projects_logs', { projectId: project.id })
    expect(logs.result.structuredContent).toEqual({ logs: expect.any(Array) })
    const { task_id: taskId } = (await mcp.call('tasks_create', { serverId: server, goal: 'ask: What?' }))
      .structuredContent
    const events = await told('tasks_events', { serverId: server, taskId })
    expect(events.result.structuredContent.events.length).toBeGreaterThan(0)
    await mcp.call('tasks_cancel', { serverId: server, taskId })
  })

  test('following what is not there is the plain failure', async () => {
    const given = { serverId: server, taskId: 'task_none' }
    expect(failureOf(await mcp.call('tasks_events', { ...given, follow: true }))).toEqual(
      failureOf(await mcp.call('tasks_events', given)),
    )
    const wrong = failureOf(await mcp.call('tasks_events', { ...given, follow: 'yes' }))
    expect(wrong).toMatchObject({ error: 'bad_request', message: expect.stringContaining('"follow"') })
  })

  test('a quiet call says now and then that it still runs, and nothing any more when it is over', () => {
    jest.useFakeTimers()
    try {
      const notices: [number, string][] = []
      const progress = new Progress((done, message) => void notices.push([done, message]))
      jest.advanceTimersByTime(20_000)
      progress.add('a')
      progress.add('b')
      jest.advanceTimersByTime(9_000)
      progress[Symbol.dispose]()
      jest.advanceTimersByTime(60_000)
      expect(notices).toEqual([
        [1, 'Still running.'],
        [2, 'Still running.'],
        [3, 'a'],
        [4, 'b'],
      ])
    } finally {
      jest.useRealTimers()
    }
  })
})

describe('a call that nobody waits for', () => {
  const endless = (mark: string) =>
    `trap 'touch ${mark}.ended; exit' TERM; touch ${mark}.begun; while :; do sleep 0.02; done`

  test.each([
    ['without progress', {}],
    ['with progress', { progressToken: 'p' }],
  ])('ends when the connection closes, %s', async (_, more) => {
    const mark = `gone-${crypto.randomUUID()}`
    const gone = new AbortController()
    const params = { name: 'exec_run', arguments: { serverId: server, command: endless(mark) } }
    const running = fetch(berth.info.mcp_url, {
      method: 'POST',
      signal: gone.signal,
      headers: {
        authorization: `Bearer ${berth.info.api_key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'exec_run',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { ...params, _meta: { ...META, ...more } },
      }),
    }).then((answer) => answer.text())
    running.catch(() => {})
    await until(() => isThere(`${mark}.begun`), 'the command runs')
    gone.abort()
    await until(() => isThere(`${mark}.ended`), 'the command is ended')
  })

  test('ends when its session is ended', async () => {
    const mark = `session-${crypto.randomUUID()}`
    await using old = await connect(berth, 'v1')
    const running = old.call('exec_run', { serverId: server, command: endless(mark) })
    running.catch(() => {})
    await until(() => isThere(`${mark}.begun`), 'the command runs')
    await old.client.transport.terminateSession()
    await until(() => isThere(`${mark}.ended`), 'the command is ended')
  })

  test('leaves nothing in the log that looks like a fault', async () => {
    const goal = 'ask: Go on?\nrun: sleep 60'
    const task = await mcp.call('tasks_create', { serverId: server, goal })
    const taskId = task.structuredContent.task_id
    await mcp.call('tasks_events', { serverId: server, taskId, follow: true })
    await mcp.call('tasks_answer', { serverId: server, taskId, answer: 'Yes.' })
    const post = (message: object) =>
      berth.fetch('/mcp', {
        method: 'POST',
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'mcp-session-id': taskId,
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      })
    const params = { name: 'tasks_events', arguments: { serverId: server, taskId, follow: true } }
    // It answers with a stream, so that the call is under way when its head is there.
    const answer = await post({ id: 1, method: 'tools/call', params })
    await post({ method: 'notifications/cancelled', params: { requestId: 1 } })
    expect(await answer.text()).not.toContain('"id":1')
    await mcp.call('tasks_cancel', { serverId: server, taskId })
    expect(berth.log()).not.toContain('an MCP request failed')
  })

  test('does not touch another call of the same session', async () => {
    await using old = await connect(berth, 'v2 of 2025')
    const mark = `two-${crypto.randomUUID()}`
    const gone = new AbortController()
    const first = old.call('exec_run', { serverId: server, command: endless(mark) }, { signal: gone.signal })
    first.catch(() => {})
    const second = old.call('exec_run', {
      serverId: server,
      command: `touch ${mark}.second; while [ ! -e ${mark}.on ]; do sleep 0.02; done; echo through`,
    })
    await until(async () => (await isThere(`${mark}.begun`)) && isThere(`${mark}.second`), 'both run')
    gone.abort()
    await until(() => isThere(`${mark}.ended`), 'the first is ended')
    await touch(`${mark}.on`)
    expect((await second).structuredContent.stdout).toBe('through\n')
  })
})

describe('a call is a request to the API', () => {
  test('a fault that a test has set on an operation strikes its tool', async () => {
    const fault = { match: { operation: 'servers.get' }, effect: { error: { status: 503 } }, times: 1 }
    await berth.control('POST', '/faults', fault)
    expect(failureOf(await mcp.call('servers_get', { serverId: server })).status).toBe(503)
    expect((await mcp.call('servers_get', { serverId: server })).isError).not.toBe(true)
    await berth.control('DELETE', '/faults')
  })

  test('a fault that cuts the connection is an error of the protocol, not a hanging call', async () => {
    const fault = { match: { operation: 'servers.get' }, effect: { disconnect: true }, times: 1 }
    await berth.control('POST', '/faults', fault)
    const error = await mcp.call('servers_get', { serverId: server }).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: -32603, message: 'A fault cut the connection.' })
    await berth.control('DELETE', '/faults')
  })

  test('a response that is not JSON is an error of the tool, and one that breaks off an error of the protocol', async () => {
    const set = (effect: object) =>
      berth.control('POST', '/faults', { match: { operation: 'servers.get' }, effect, times: 1 })
    await set({ respond: { status: 502, content_type: 'text/html', body: '<h1>502 Bad Gateway</h1>' } })
    const failure = failureOf(await mcp.call('servers_get', { serverId: server }))
    expect([failure.status, failure.error]).toEqual([502, 'unexpected_response'])
    expect(failure.message).toContain('<h1>502 Bad Gateway</h1>')
    await set({ truncate: { bytes: 5 } })
    await set({ lose_response: true })
    for (const message of [
      'A fault cut the connection within the response.',
      'A fault cut the connection.',
    ]) {
      const error = await mcp.call('servers_get', { serverId: server }).catch((thrown) => thrown)
      expect(error).toMatchObject({ code: -32603, message })
    }
    await berth.control('DELETE', '/faults')
  })

  test('a fault on every request strikes a call once, and not the exchange that carries it', async () => {
    const { body } = await berth.control('POST', '/faults', { match: {}, effect: { error: { status: 503 } } })
    expect(failureOf(await mcp.call('servers_get', { serverId: server })).status).toBe(503)
    const { faults } = (await berth.control('GET', '/faults')).body
    expect(faults).toMatchObject([{ id: body.id, matched: 1, hits: 1 }])
    await berth.control('DELETE', '/faults')
  })

  test('a fault on the path of the endpoint itself strikes the exchange', async () => {
    await berth.control('POST', '/faults', { match: { path: '/mcp' }, effect: { error: { status: 503 } } })
    const answer = await send(berth, 'tools/call', { name: 'servers_get', arguments: { serverId: server } })
    expect(answer.status).toBe(503)
    await berth.control('DELETE', '/faults')
  })

  test('the budget holds', async () => {
    const { api_key: key, id } = (await berth.control('POST', '/accounts')).body
    await using poor = await connect(berth, 'v2', key)
    const serverId = (await poor.call('servers_create')).structuredContent.id
    await berth.control('PATCH', `/accounts/${id}`, { budget_cap: 0 })
    const refused = failureOf(await poor.call('tasks_create', { serverId, goal: 'x' }))
    expect(refused).toMatchObject({ error: 'budget_exceeded', status: 402 })
  })

  test('an Idempotency-Key holds for the call, progress or not', async () => {
    const key = { 'idempotency-key': crypto.randomUUID() }
    const call = async (_meta: object) => {
      const given = { serverId: server, command: 'date +%N' }
      const answer = await send(berth, 'tools/call', { name: 'exec_run', arguments: given, _meta }, key)
      return (await messageOf(answer)).result.structuredContent
    }
    const first = await call({ progressToken: 1 })
    expect(first.stdout).toMatch(/^\d+\n$/)
    expect(await call({})).toEqual(first)
    expect(await call({ progressToken: 2 })).toEqual(first)
  })

  test.each(Object.entries(CLIENTS))('many calls at once are answered, each its own: %s', async (_, kind) => {
    await using client = await connect(berth, kind)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        client.call('exec_run', { serverId: server, command: `echo ${n}` }),
      ),
    )
    expect(answers.map(({ structuredContent }) => structuredContent.stdout)).toEqual(
      Array.from({ length: 20 }, (_, n) => `${n}\n`),
    )
  })
})

test('there is nothing to subscribe to: a subscription is acknowledged as empty, and is over', async () => {
  const params = { notifications: { toolsListChanged: true } }
  const text = await (await send(berth, 'subscriptions/listen', params)).text()
  expect(text).toContain('"method":"notifications/subscriptions/acknowledged","params":{"notifications":{}')
})

describe('how an answer comes', () => {
  const call = (command: string, more: object = {}) =>
    send(berth, 'tools/call', { name: 'exec_run', arguments: { serverId: server, command }, ...more })

  test('whole, where it is there at once', async () => {
    // Nothing of it is up to another process, which a busy machine may take its time for.
    const params = { name: 'servers_get', arguments: { serverId: server } }
    const answer = await send(berth, 'tools/call', params)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect((await messageOf(answer)).result.structuredContent.server.id).toBe(server)
  })

  test('as a stream that begins before it is there, where it takes long', async () => {
    const started = performance.now()
    const answer = await call('touch slow; while [ ! -e finish ]; do sleep 0.02; done; echo slow')
    // Long before the stream is first kept awake, after 15 s.
    expect(performance.now() - started).toBeLessThan(10_000)
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    await touch('finish')
    expect((await messageOf(answer)).result.structuredContent.stdout).toBe('slow\n')
  })

  test('as a stream with progress', async () => {
    const answer = await call('echo one; sleep 0.2', { _meta: { progressToken: 'p' } })
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    const text = await answer.text()
    expect(text.match(/"progressToken":"p"/g)?.length).toBe(1)
    expect(text.indexOf('"progressToken"')).toBeLessThan(text.indexOf('"structuredContent"'))
  })
})

test('after a reset the endpoint serves the new state to who connects anew', async () => {
  await using other = await testBerth()
  await using before = await connect(other, 'v2')
  await before.call('servers_create')
  await other.control('POST', '/reset')
  await using after = await connect(other, 'v2')
  expect((await after.call('servers_list')).structuredContent).toEqual({ servers: [] })
  expect((await before.call('servers_list')).structuredContent).toEqual({ servers: [] })
})
