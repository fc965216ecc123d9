import type { TestBerth } from '../support/berth.ts'
import { accessToken } from '../support/oauth.ts'
import { until } from '../support/processes.ts'
import { EXAMPLES, type World } from './examples.ts'

/** What takes long to make and few operations need. */
type Part = 'access' | 'execution' | 'terminal' | 'task' | 'build' | 'deployment'

const PART_OF: Readonly<Record<string, Part>> = {
  programId: 'access',
  browserId: 'access',
  executionId: 'execution',
  terminalId: 'terminal',
  pid: 'terminal',
  taskId: 'task',
  buildId: 'build',
}

interface Operation {
  id: string
  method: string
  path: string
}

/**
 * Runs a test of an operation on a world: on one of its own if the operation may change it, else on a shared one. The own
 * one has those parts only that the operation names.
 */
export async function onWorld(
  berth: TestBerth,
  shared: World,
  { id, method, path }: Operation,
  work: (world: World) => Promise<void>,
): Promise<void> {
  const { body, needsDeployment } = EXAMPLES[id] ?? {}
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  // A body may name a resource where the path does not.
  if (typeof body === 'function')
    body((name) => {
      named.push(name)
      return ''
    })
  if (method === 'GET' || named.length === 0) return work(shared)
  const parts = named.flatMap((name) => PART_OF[name] ?? [])
  await using own = await newWorld(berth, needsDeployment ? [...parts, 'deployment'] : parts)
  await work(own)
}

/**
 * What the requests of one test work on; afterwards it is removed, as far as the test has not done it.
 *
 * @param parts what it has beside the server, its file, its project, a key and a webhook; ids of others are empty
 */
export async function newWorld(
  berth: TestBerth,
  parts: readonly Part[] = ['access', 'execution', 'terminal', 'task', 'build'],
): Promise<World & AsyncDisposable> {
  const serverId = await berth.server()
  await berth.call('PUT', `/servers/${serverId}/files`, { path: 'file.txt', content: 'x' })
  const keyId: string = (await berth.call('POST', '/keys', { label: 'worked on' })).body.id
  const webhookId: string = (await berth.call('POST', '/webhooks', { url: 'https://8.8.8.8/' })).body.id
  const wishes = { lifecycle: 'ephemeral' }
  const project = (await berth.call('POST', `/servers/${serverId}/projects`, wishes)).body
  const page = { path: `projects/${project.slug}/index.html`, content: 'x' }
  await berth.call('PUT', `/servers/${serverId}/files`, page)
  const has = (part: Part) => parts.includes(part)
  if (has('deployment')) await berth.call('POST', `/servers/${serverId}/deployments`)
  return {
    serverId,
    keyId,
    webhookId,
    ...(has('access') ? await newAccess(berth) : { programId: '', browserId: '' }),
    executionId: has('execution') ? await newExecution(berth, serverId) : '',
    ...(has('terminal') ? await newTerminal(berth, serverId) : { terminalId: '', pid: '' }),
    projectId: project.id,
    taskId: has('task') ? await newTask(berth, serverId) : '',
    buildId: has('build') ? await newBuild(berth, serverId) : '',
    async [Symbol.asyncDispose]() {
      await berth.call('DELETE', `/servers/${serverId}`)
      await berth.call('DELETE', `/keys/${keyId}`)
      await berth.call('DELETE', `/webhooks/${webhookId}`)
    },
  }
}

async function newAccess(berth: TestBerth): Promise<{ programId: string; browserId: string }> {
  await accessToken(berth)
  const { programs } = (await berth.call('GET', '/programs')).body
  const { browsers } = (await berth.call('GET', '/browsers')).body
  return { programId: programs[0].id, browserId: browsers[0].id }
}

async function newExecution(berth: TestBerth, serverId: string): Promise<string> {
  const body = { command: 'sleep 300', detach: true, openStdin: true }
  return (await berth.call('POST', `/servers/${serverId}/exec`, body)).body.execution.id
}

async function newTerminal(berth: TestBerth, serverId: string): Promise<{ terminalId: string; pid: string }> {
  const command = { command: 'sleep 300' }
  const { terminal } = (await berth.call('POST', `/servers/${serverId}/terminals`, command)).body
  const { processes } = (await berth.call('GET', `/servers/${serverId}/processes`)).body
  return { terminalId: terminal.id, pid: String(processes[0].pid) }
}

async function newTask(berth: TestBerth, serverId: string): Promise<string> {
  const task = (await berth.call('POST', `/servers/${serverId}/tasks`, { goal: 'ask: Go on?' })).body
  const asks = async () => {
    const { body } = await berth.call('GET', `/servers/${serverId}/tasks/${task.task_id}`)
    return body.task.status === 'awaiting_input'
  }
  await until(asks, 'the task asks')
  return task.task_id
}

async function newBuild(berth: TestBerth, serverId: string): Promise<string> {
  const build = (await berth.call('POST', `/servers/${serverId}/builds`, { goal: 'fail: At once.' })).body
  const isOver = async () => {
    const { body } = await berth.call('GET', `/servers/${serverId}/builds/${build.build_id}`)
    return body.build.status === 'completed'
  }
  await until(isOver, 'the build is over')
  return build.build_id
}
