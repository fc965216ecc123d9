import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { messageOf } from './raw.ts'

setDefaultTimeout(60_000)

/** Most characters of a result. */
const LIMIT = 24_000

const berth = await berthForTests()
const serverId = await berth.server()

/** Sends one message as it is; resolves to the response's. */
async function post(body: string, query = '') {
  const response = await berth.fetch(`/mcp${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body,
  })
  return messageOf(response)
}

const send = (method: string, params: unknown, query?: string) =>
  post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), query)

/** Calls a tool; resolves to its result, with its JSON and the sentences about it. */
async function call(name: string, args: object, query?: string) {
  const { result } = await send('tools/call', { name, arguments: args }, query)
  const [first, about] = result.content
  const body = result.structuredContent ?? JSON.parse(first.text)
  return { result, body, about: about?.text as string | undefined, size: JSON.stringify(result).length }
}

/** Follows what a result says of its rest: the tool and the arguments. */
function restOf(about: string | undefined): [name: string, args: object] {
  const [, name = '', args = '{}'] = /Read the rest with (\w+) (\{.*\})\.$/.exec(about ?? '') ?? []
  return [name, JSON.parse(args)]
}

const run = (command: string, query?: string) => call('exec_run', { serverId, command }, query)

describe('a large result', () => {
  test.each(['', '?schemas=full'])(
    'of a command has its head and tail, and counts, in one place%s',
    async (query) => {
      const { result, body, about, size } = await run('seq 1 200000', query)
      expect(size).toBeLessThanOrEqual(LIMIT)
      expect(body.stdout).toStartWith('1\n2\n3\n')
      expect(body.stdout).toEndWith('\n199999\n200000\n')
      expect(body).toMatchObject({ exitCode: 0, truncated: true, stdoutBytes: 1_288_895 })
      expect(about).toContain('1,288,895 bytes were printed')
      // The bulk stands in one of the two.
      expect(JSON.stringify(result).split('\\n199998').length).toBe(2)
    },
  )

  test('names the tool and the arguments that read the rest of a command, to its end', async () => {
    const { body, about } = await run('seq 1 20000')
    const [head] = body.stdout.split('\n[…')
    let [name, args] = restOf(about)
    let text = head
    for (let calls = 0; calls < 20; calls++) {
      const page = await call(name, args)
      expect(page.size).toBeLessThanOrEqual(LIMIT)
      text += page.body.output.map(({ data }: { data: string }) => data).join('')
      if (page.about === undefined) break
      ;[name, args] = restOf(page.about)
      expect(args).toMatchObject({ after: page.body.next })
    }
    expect(text).toBe(Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(''))
  })

  test('of both streams shows both', async () => {
    const { body, size } = await run('seq 1 50000; seq 50001 100000 >&2')
    expect(size).toBeLessThanOrEqual(LIMIT)
    for (const [text, first, last] of [
      [body.stdout, '1\n', '50000\n'],
      [body.stderr, '50001\n', '100000\n'],
    ]) {
      expect(text.length).toBeGreaterThan(5_000)
      expect([text.startsWith(first), text.endsWith(last)]).toEqual([true, true])
    }
  })

  test('of a file is read on by a command', async () => {
    const content = Array.from({ length: 10_000 }, (_, index) => `line ${index} é\n`).join('')
    await berth.call('PUT', `/servers/${serverId}/files`, { path: "it's/big.txt", content })
    const { body, about, size } = await call('files_read', { serverId, path: "it's/big.txt" })
    expect(size).toBeLessThanOrEqual(LIMIT)
    const [head] = body.content.split('\n[…')
    const [name, args] = restOf(about)
    const rest = (await call(name, args)).body.stdout.slice(0, 4_000)
    expect(content.startsWith(head + rest)).toBe(true)
  })

  test('of a list has whole items', async () => {
    const command = 'mkdir -p many; cd many; for i in $(seq 3000); do : > a-file-with-a-long-name-$i; done'
    await run(command)
    const { body, about, size } = await call('files_read', { serverId })
    expect(size).toBeLessThanOrEqual(LIMIT)
    expect(about).toMatch(/files has the first [\d,]+ and the last [\d,]+ of 3,\d+ items/)
    for (const file of body.files) expect(file).not.toContain('left out')
    await run('rm -rf many')
  })

  test('of a failure is cut, too', async () => {
    const { result, size } = await call('files_write', {
      serverId,
      path: 'x',
      content: 'y',
      encoding: 'z'.repeat(50_000),
    })
    expect([result.isError, size <= LIMIT]).toEqual([true, true])
  })

  test('is as large as --mcp-output says', async () => {
    await using other = await testBerth({ flags: { 'mcp-output': '5000' } })
    const server = await other.server()
    const params = { name: 'exec_run', arguments: { serverId: server, command: 'seq 1 20000' } }
    const response = await other.fetch('/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    const { length } = JSON.stringify((await messageOf(response)).result)
    expect(length).toBeGreaterThan(3_000)
    expect(length).toBeLessThanOrEqual(5_000)
  })

  test('a command whose result is whole leaves no execution', async () => {
    const server = await berth.server()
    await call('exec_run', { serverId: server, command: 'echo x' })
    expect((await call('executions_list', { serverId: server })).body).toEqual({ executions: [] })
    await call('exec_run', { serverId: server, command: 'seq 1 20000' })
    expect((await call('executions_list', { serverId: server })).body.executions.length).toBe(1)
    await berth.call('DELETE', `/servers/${server}`)
  })
})

test('bytes that are not UTF-8 are described in one sentence, and are exact in the structured content', async () => {
  const { result, about } = await run("printf 'a\\377b'; printf '\\376' >&2")
  expect(result.structuredContent).toMatchObject({
    stdout: 'a\ufffdb',
    stdoutBase64: 'Yf9i',
    stderrBase64: '/g==',
  })
  expect(result.content[0].text).not.toContain('Base64')
  expect(about?.match(/[.] /g) ?? []).toEqual([])
  const large = await run('head -c 6000 /dev/zero | tr "\\0" "\\377"')
  expect(large.about).toContain('executions_output')
  const { body } = await call('executions_output', { serverId, executionId: large.body.executionId })
  expect(Buffer.from(body.output[0].data, 'base64')).toEqual(Buffer.alloc(2048, 255))
})

describe('the list of tools', () => {
  const tools = async (query = '') => (await send('tools/list', {}, query)).result
  const tokens = (list: object) => JSON.stringify(list).length / 4

  test('is under 9,000 tokens, and that of core under 4,000', async () => {
    expect(tokens(await tools())).toBeLessThan(9_000)
    const core = await tools('?tools=core')
    expect(tokens(core)).toBeLessThan(4_000)
    expect(core.tools.map(({ name }: { name: string }) => name)).toEqual([
      'servers_list',
      'servers_create',
      'servers_get',
      'exec_run',
      'executions_output',
      'executions_delete',
      'files_read',
      'files_write',
      'deployments_create',
      'projects_create',
      'projects_get',
      'projects_logs',
    ])
  })

  test('has output schemas only where they are asked for, and then exitCode is optional', async () => {
    for (const tool of (await tools()).tools) expect(tool).not.toHaveProperty('outputSchema')
    const full = (await tools('?schemas=full')).tools
    for (const tool of full) expect(tool.outputSchema).toMatchObject({ type: 'object' })
    const { outputSchema } = full.find(({ name }: { name: string }) => name === 'exec_run')
    expect(outputSchema.properties).toHaveProperty('exitCode')
    expect(JSON.stringify(outputSchema.anyOf)).not.toContain('exitCode')
  })

  test.each(['?tools=some', '?schemas=1', '?tools=core&tools=all'])('%s is refused', async (query) => {
    expect(await send('tools/list', {}, query)).toMatchObject({ error: { code: -32_600 } })
  })
})

describe('arguments', () => {
  test('are taken in either spelling, but not in both', async () => {
    expect(
      (await call('exec_run', { server_id: serverId, command: 'true', timeout_ms: 5_000 })).body.exitCode,
    ).toBe(0)
    const project = (await berth.call('POST', `/servers/${serverId}/projects`, {})).body
    expect((await call('projects_get', { project_id: project.id })).body.id).toBe(project.id)
    expect((await call('secrets_set', { serverId, secrets: {} })).result.isError).toBeUndefined()
    const { result } = await call('servers_get', { serverId, server_id: serverId })
    expect([result.isError, result.content[0].text]).toEqual([true, expect.stringContaining('same argument')])
  })

  test.each([
    ['servers_get', { id: 'srv_x' }],
    ['exec_run', { id: 'srv_x', command: 'true' }],
    ['files_read', { server: 'srv_x' }],
    ['projects_delete', { id: 'prj_x' }],
  ])('of %s that are unknown are named where an id is missing', async (name, args) => {
    const { result } = await call(name, args)
    const [unknown] = Object.keys(args)
    expect(JSON.parse(result.content[0].text)).toMatchObject({
      error: 'bad_request',
      message: expect.stringMatching(new RegExp(`^"\\w+Id": expected an id.* "${unknown}": did you mean`)),
    })
  })

  test.each(['templates_list', 'exec_run', 'servers_create'])(
    'of %s named __proto__ are refused',
    async (name) => {
      const rest = name === 'exec_run' ? `,"serverId":"${serverId}","command":"true"` : ''
      const params = `{"name":"${name}","arguments":{"__proto__":{"x":1}${rest}}}`
      const { result } = await post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)
      expect([result.isError, result.content[0].text]).toEqual([
        true,
        expect.stringContaining('\\"__proto__\\"'),
      ])
      // In an object of the API it is a name as any other.
      const env = `{"name":"exec_run","arguments":{"serverId":"${serverId}","command":"echo $__proto__","env":{"__proto__":"kept"}}}`
      const nested = await post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${env}}`)
      expect(nested.result.structuredContent.stdout).toBe('kept\n')
    },
  )
})

describe('parameters of a wrong shape are -32602 with a sentence', () => {
  test.each([
    ['tools/call', { name: 1 }, '"name" in params: expected text, got 1.'],
    ['tools/call', {}, '"name" in params: expected text, got nothing.'],
    [
      'tools/call',
      { name: 'templates_list', arguments: [] },
      '"arguments" in params: expected an object, got [].',
    ],
    ['prompts/get', { name: 1 }, '"name" in params: expected text, got 1.'],
    [
      'prompts/get',
      { name: 'run_task', arguments: { goal: 5 } },
      '"arguments.goal" in params: expected text, got 5.',
    ],
    ['resources/read', undefined, '"uri" in params: expected text, got nothing.'],
    [
      'completion/complete',
      { ref: { type: 'x' } },
      '"ref.type" in params: expected "ref/prompt" or "ref/resource", got "x".',
    ],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'run_task' }, argument: { name: 'goal' } },
      '"argument.value" in params: expected text, got nothing.',
    ],
    ['tools/list', { cursor: 5 }, '"cursor" in params: the list has one page'],
    ['tools/list', { cursor: 'page2' }, '"cursor" in params: the list has one page'],
    ['resources/list', { cursor: 'page2' }, '"cursor" in params: the list has one page'],
    ['prompts/list', [], '"params": expected an object, got [].'],
    [
      'tools/list',
      { _meta: { progressToken: {} } },
      '"_meta.progressToken" in params: expected text or a number',
    ],
    ['initialize', { protocolVersion: 5 }, '"protocolVersion" in params: expected text, got 5.'],
  ])('%s %j', async (method, params, sentence) => {
    const { id, error } = await send(method, params)
    expect([id, error.code]).toEqual([1, -32_602])
    expect(error.message).toStartWith(sentence)
    expect(error.message).not.toContain('\n')
  })

  test('in a batch, too, beside the responses to the others', async () => {
    const response = await berth.fetch('/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify([
        { jsonrpc: '2.0', id: 1, method: 'prompts/get', params: { name: 1 } },
        { jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} },
        { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'templates_list' } },
      ]),
    })
    const messages = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) =>
      JSON.parse(data),
    )
    expect(messages.map(({ id, error }) => [id, error?.code]).sort()).toEqual([
      [1, -32_602],
      [2, undefined],
      [3, undefined],
    ])
  })

  test('right ones pass', async () => {
    for (const method of ['tools/list', 'prompts/list', 'resources/templates/list'])
      expect(await send(method, {})).toHaveProperty('result')
    expect(await send('prompts/list', undefined)).toHaveProperty('result')
  })
})
