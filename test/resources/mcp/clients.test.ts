import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { API_OPERATION_IDS } from '../../../src/contract/operations.ts'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { CLIENTS, connect, failureOf, type McpClient, WITHOUT_TOOL } from './clients.ts'

const berth = await berthForTests()

describe.each(Object.entries(CLIENTS))('%s', (_, kind) => {
  let mcp: McpClient
  let server: string
  beforeAll(async () => {
    mcp = await connect(berth, kind)
    server = (await mcp.call('servers_create', { task: kind })).structuredContent.id
  })
  afterAll(() => mcp[Symbol.asyncDispose]())

  test('speaks its protocol and learns how berth works', () => {
    expect(mcp.protocol).toBe(kind === 'v2' ? '2026-07-28' : '2025-11-25')
    expect(mcp.client.getServerVersion().name).toBe('berth')
    expect(mcp.client.getInstructions()).toContain('servers_create')
  })

  test('finds a tool for every operation but WebSockets and streams of bytes', async () => {
    const { tools } = await mcp.client.listTools()
    expect(tools.map(({ name }: { name: string }) => name).sort()).toEqual(
      API_OPERATION_IDS.filter((id) => !WITHOUT_TOOL.has(id))
        .map((id) => id.replaceAll('.', '_'))
        .sort(),
    )
  })

  test('runs a command: the same answer as text and as an object, and the one that the API gives', async () => {
    const { structuredContent, content, isError } = await mcp.call('exec_run', {
      serverId: server,
      command: 'echo out; echo err >&2; exit 3',
    })
    const byHttp = await berth.exec(server, 'echo out; echo err >&2; exit 3')
    expect(isError).not.toBe(true)
    expect(structuredContent).toEqual(byHttp)
    expect(JSON.parse(content[0]?.text ?? '')).toEqual(structuredContent)
  })

  test('writes a file and reads it back', async () => {
    await mcp.call('files_write', { serverId: server, path: 'a b/ü.txt', content: 'hé' })
    const { structuredContent } = await mcp.call('files_read', { serverId: server, path: 'a b/ü.txt' })
    expect(structuredContent).toEqual({ path: 'a b/ü.txt', content: 'hé' })
  })

  test('a task is given, followed to its question, answered, and followed to its end', async () => {
    const goal = 'run: echo working\nask: Which colour?\ncomplete: Done.'
    const { task_id: taskId } = (await mcp.call('tasks_create', { serverId: server, goal })).structuredContent
    const told: string[] = []
    const follow = async (given: object = {}) =>
      (
        await mcp.call(
          'tasks_events',
          { serverId: server, taskId, follow: true, ...given },
          { onprogress: ({ message }) => told.push(message ?? '') },
        )
      ).structuredContent.events
    const asked = await follow()
    expect(asked.at(-1).type).toMatch(/question|status/)
    expect(told.join('')).toContain('working')
    await mcp.call('tasks_answer', { serverId: server, taskId, answer: 'Blue' })
    const rest = await follow({ after: asked.at(-1).seq })
    expect(rest.at(-1)).toMatchObject({ type: 'status', status: 'completed' })
    const plain = await mcp.call('tasks_events', { serverId: server, taskId, after: asked.at(-1).seq })
    expect(plain.structuredContent.events).toEqual(rest)
  })

  test('a failure is a result that says what is wrong, as the API says it', async () => {
    const result = await mcp.call('servers_get', { serverId: 'srv_none' })
    const byHttp = await berth.call('GET', '/servers/srv_none')
    expect(failureOf(result)).toEqual({ ...byHttp.body, status: 404 })
    const shape = failureOf(await mcp.call('exec_run', { serverId: server, command: 5 }))
    expect(shape).toMatchObject({ error: 'bad_request', status: 400 })
    expect(shape.message).toContain('"command"')
  })

  test('a tool that is not there is an error of the protocol', async () => {
    const error = await mcp.call('no_such_tool').catch((thrown) => thrown)
    expect(error.code).toBe(-32602)
  })

  test('output comes as progress while a command runs, and the result is the plain one', async () => {
    const command = 'echo one; while [ ! -e go ]; do sleep 0.01; done; rm go; printf "t\\303\\274"; exit 1'
    const told: { progress: number; message?: string | undefined }[] = []
    const running = mcp.call(
      'exec_run',
      { serverId: server, command },
      { onprogress: (progress) => told.push(progress) },
    )
    await until(() => told.length > 0, 'progress comes while the command runs')
    expect(told[0]?.message).toBe('one\n')
    await berth.call('PUT', `/servers/${server}/files`, { path: 'go', content: '' })
    expect((await running).structuredContent).toEqual({
      stdout: 'one\ntü',
      stderr: '',
      exitCode: 1,
      timedOut: false,
      truncated: false,
    })
    expect(told.map(({ message }) => message).join('')).toBe('one\ntü')
    expect(told.map(({ progress }) => progress)).toEqual(told.map((_, index) => index + 1))
  })

  test('calling a call off ends the command', async () => {
    const mark = `mark-${crypto.randomUUID()}`
    const command = `sleep 300 & echo $! > ${mark}; wait`
    const gone = new AbortController()
    const running = mcp.call('exec_run', { serverId: server, command }, { signal: gone.signal })
    running.catch(() => {})
    const pid = async () =>
      (await berth.call('GET', `/servers/${server}/files?path=${mark}`)).body.content?.trim()
    await until(async () => Boolean(await pid()), 'the command runs')
    gone.abort('enough')
    await expect(running).rejects.toThrow()
    const alive = async () =>
      (await berth.exec(server, `kill -0 ${await pid()} 2>/dev/null && echo yes`)).stdout === 'yes\n'
    await until(async () => !(await alive()), 'the command is ended')
  })

  test('reads files as resources, finds them listed, and completes their names', async () => {
    await mcp.call('files_write', { serverId: server, path: 'page #1?.html', content: '<p>' })
    await mcp.call('files_write', { serverId: server, path: 'raw.bin', content: '/wA=', encoding: 'base64' })
    const { resources } = await mcp.client.listResources()
    const page = resources.find(
      ({ name, uri }: { name: string; uri: string }) => name === 'page #1?.html' && uri.includes(server),
    )
    const read = async (uri: string) => (await mcp.client.readResource({ uri })).contents[0]
    expect(await read(page.uri)).toEqual({ uri: page.uri, mimeType: 'text/html', text: '<p>' })
    expect(await read(`berth://servers/${server}/files/raw.bin`)).toMatchObject({ blob: '/wA=' })
    const ref = { type: 'ref/resource', uri: 'berth://servers/{serverId}/files/{+path}' }
    const { completion } = await mcp.client.complete({
      ref,
      argument: { name: 'path', value: 'ra' },
      context: { arguments: { serverId: server } },
    })
    expect(completion).toEqual({ values: ['raw.bin'], total: 1, hasMore: false })
    const ids = await mcp.client.complete({ ref, argument: { name: 'serverId', value: server } })
    expect(ids.completion.values).toEqual([server])
    const templates = await mcp.client.complete({
      ref: { type: 'ref/prompt', name: 'deploy_app' },
      argument: { name: 'source', value: 'static' },
    })
    expect(templates.completion.values).toEqual(['static-site'])
  })

  test('a resource that is not there is the error that the protocol has for it', async () => {
    const uri = `berth://servers/${server}/files/none`
    const error = await mcp.client.readResource({ uri }).catch((thrown: unknown) => thrown)
    // -32002 of earlier drafts is sent to nobody any more (MCP 2026-07-28, "Resources", error handling).
    expect(error.code).toBe(-32602)
    expect(error.message).toContain(uri)
  })

  test('finds prompts, fills them in, and gets an error for a missing argument', async () => {
    const { prompts } = await mcp.client.listPrompts()
    expect(prompts.map(({ name }: { name: string }) => name)).toEqual([
      'deploy_app',
      'find_out_why_it_failed',
      'run_task',
    ])
    const given = { goal: 'Tidy up', serverId: server }
    const { messages } = await mcp.client.getPrompt({ name: 'run_task', arguments: given })
    expect(messages[0].content.text).toContain('Tidy up')
    expect(messages[0].content.text).toContain(server)
    const error = await mcp.client.getPrompt({ name: 'run_task' }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('"goal"') })
  })
})

test('the program of docs/mcp.md prints the servers, also when they are many', async () => {
  const root = join(import.meta.dir, '../../..')
  const page = readFileSync(join(root, 'docs/mcp.md'), 'utf8')
  const program = /```js\n(.*?)```/s.exec(page)?.[1]?.replace('structuredContent.servers', '$&.length')
  for (let n = 0; n < 6; n += 1)
    await berth.call('POST', '/servers', { task: 'a label of many words '.repeat(15) })
  const { mcp_url: url, api_key: key } = berth.info
  const child = Bun.spawn([process.execPath, 'run', '-'], {
    cwd: root,
    env: { PATH: process.env.PATH, BERTH_MCP_URL: url, BERTH_API_KEY: key },
    stdio: [Buffer.from(program ?? ''), 'pipe', 'inherit'],
  })
  expect(Number(await child.stdout.text())).toBeGreaterThanOrEqual(6)
})
