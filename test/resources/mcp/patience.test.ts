import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { connect, type McpClient } from './clients.ts'

// Each call responds after 45 s, which are real ones.
setDefaultTimeout(180_000)

let berth: TestBerth
let mcp: McpClient
beforeAll(async () => {
  berth = await testBerth()
  mcp = await connect(berth, 'v2')
})
afterAll(async () => {
  await mcp[Symbol.asyncDispose]()
  await berth[Symbol.asyncDispose]()
})

const call = async (name: string, args: object) => {
  const begun = performance.now()
  const { isError, structuredContent: body, content } = await mcp.call(name, args)
  return { isError, body, content, ms: performance.now() - begun }
}

const put = (serverId: string, path: string, content: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path, content })

/** An app that listens once a file is there. */
const LATE_APP = `
const { existsSync } = require('node:fs')
const wait = setInterval(() => {
  if (!existsSync('go')) return
  clearInterval(wait)
  require('node:http').createServer((_, response) => response.end('here')).listen(process.env.PORT)
}, 50)`

test.concurrent('a command that takes long goes on as an execution, which can be followed to its end', async () => {
  const serverId = await berth.server()
  await put(serverId, 'quick', '')
  const { body, ms } = await call('exec_run', {
    serverId,
    command: 'echo begun; until [ -e go ]; do sleep 0.1; done; exit 4',
  })
  expect(ms).toBeLessThan(55_000)
  const { executionId, ...rest } = body
  expect(executionId).toMatch(/^exe_/)
  expect(rest).toMatchObject({ status: 'running', stdout: 'begun\n', stderr: '' })
  expect(rest).not.toHaveProperty('exitCode')
  const named = { serverId, executionId }
  const { output, next } = (await call('executions_output', named)).body
  expect(output[0].data).toBe('begun\n')
  const following = call('executions_output', { ...named, after: next, follow: true })
  await put(serverId, 'go', '')
  expect((await following).body.execution).toMatchObject({ status: 'exited', exitCode: 4 })
})

test.concurrent('executions_delete ends a command whose call has responded', async () => {
  const serverId = await berth.server()
  const { body } = await call('exec_run', { serverId, command: 'sleep 300' })
  await call('executions_delete', { serverId, executionId: body.executionId })
  const { execution } = (await call('executions_get', { serverId, executionId: body.executionId })).body
  expect(execution).toMatchObject({ status: 'exited', exitCode: 143 })
})

test.concurrent('a publication that takes long goes on, and deployments_logs tells its end', async () => {
  const serverId = await berth.server()
  await put(serverId, 'package.json', JSON.stringify({ scripts: { start: 'node app.js' } }))
  await put(serverId, 'app.js', LATE_APP)
  const { body, ms } = await call('deployments_create', { serverId })
  expect(ms).toBeLessThan(55_000)
  expect(body).toEqual({ status: 'starting', phase: expect.any(String) })
  const following = call('deployments_logs', { serverId, follow: true })
  await put(serverId, 'go', '')
  const { body: end } = await following
  expect([end.status, Array.isArray(end.logs)]).toEqual(['live', true])
  expect(await (await fetch(end.url)).text()).toBe('here')
})

test.concurrent('a project is followed to ready, and no longer than 45 s', async () => {
  const serverId = await berth.server()
  const template = (await call('templates_list', {})).body.templates[0].id
  const { id } = (await call('projects_create', { serverId, template, visibility: 'public' })).body
  const { body } = await call('projects_get', { projectId: id, follow: true })
  expect(body).toMatchObject({ id, init_phase: 'ready', runtime_status: 'running' })
  const again = (await call('projects_init', { projectId: id, follow: true })).body
  expect(again.init_run_id).toMatch(/^irun_/)
  expect(again).toMatchObject({ id, init_phase: 'ready' })
  const blank = (await call('projects_create', { serverId })).body
  expect((await call('projects_get', { projectId: blank.id, follow: true })).ms).toBeLessThan(10_000)
  const folder = `projects/${blank.slug}`
  await put(serverId, `${folder}/package.json`, JSON.stringify({ scripts: { start: 'node app.js' } }))
  await put(serverId, `${folder}/app.js`, LATE_APP)
  const { body: late, ms } = await call('projects_init', { projectId: blank.id, follow: true })
  expect(['start', 'healthcheck']).toContain(late.init_phase)
  expect(ms).toBeLessThan(55_000)
  await put(serverId, `${folder}/go`, '')
  expect((await call('projects_get', { projectId: blank.id, follow: true })).body.init_phase).toBe('ready')
})

test.concurrent('a task that takes long is returned as far as it has come', async () => {
  const serverId = await berth.server()
  const { task_id: taskId } = (await call('tasks_create', { serverId, goal: 'run: echo begun\nwait: 300s' }))
    .body
  const { body, ms } = await call('tasks_events', { serverId, taskId, follow: true })
  expect(ms).toBeLessThan(55_000)
  expect(body.events.some(({ type }: { type: string }) => type === 'toolResult')).toBe(true)
  await call('tasks_cancel', { serverId, taskId })
})

test('a call that is called off before that ends its command', async () => {
  const serverId = await berth.server()
  const controller = new AbortController()
  const command = 'trap "touch ended; exit" TERM; touch begun; while :; do sleep 0.1; done'
  const result = mcp.call('exec_run', { serverId, command }, { signal: controller.signal }).catch(() => null)
  const isThere = async (path: string) =>
    (await berth.call('GET', `/servers/${serverId}/files?path=${path}`)).status === 200
  await until(() => isThere('begun'), 'the command to begin')
  controller.abort()
  await until(() => isThere('ended'), 'the command to end')
  await result
  expect((await berth.call('GET', `/servers/${serverId}/executions`)).body).toEqual({ executions: [] })
})
