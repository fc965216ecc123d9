import type { TestBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import type { World } from './examples.ts'

/** What the requests of one test work on; afterwards it is removed, as far as the test has not done it. */
export async function newWorld(berth: TestBerth): Promise<World & AsyncDisposable> {
  const serverId = await berth.server()
  await berth.call('PUT', `/servers/${serverId}/files`, { path: 'file.txt', content: 'x' })
  const keyId: string = (await berth.call('POST', '/keys', { label: 'worked on' })).body.id
  const webhookId: string = (await berth.call('POST', '/webhooks', { url: 'https://8.8.8.8/' })).body.id
  const command = { command: 'sleep 300' }
  const { terminal } = (await berth.call('POST', `/servers/${serverId}/terminals`, command)).body
  const { processes } = (await berth.call('GET', `/servers/${serverId}/processes`)).body
  const wishes = { lifecycle: 'ephemeral' }
  const project = (await berth.call('POST', `/servers/${serverId}/projects`, wishes)).body
  const page = { path: `projects/${project.slug}/index.html`, content: 'x' }
  await berth.call('PUT', `/servers/${serverId}/files`, page)
  const task = (await berth.call('POST', `/servers/${serverId}/tasks`, { goal: 'ask: Go on?' })).body
  const asks = async () => {
    const { body } = await berth.call('GET', `/servers/${serverId}/tasks/${task.task_id}`)
    return body.task.status === 'awaiting_input'
  }
  await until(asks, 'the task asks')
  const build = (await berth.call('POST', `/servers/${serverId}/builds`, { goal: 'fail: At once.' })).body
  const isOver = async () => {
    const { body } = await berth.call('GET', `/servers/${serverId}/builds/${build.build_id}`)
    return body.build.status === 'completed'
  }
  await until(isOver, 'the build is over')
  return {
    serverId,
    keyId,
    webhookId,
    terminalId: terminal.id,
    pid: String(processes[0].pid),
    projectId: project.id,
    taskId: task.task_id,
    buildId: build.build_id,
    async [Symbol.asyncDispose]() {
      await berth.call('DELETE', `/servers/${serverId}`)
      await berth.call('DELETE', `/keys/${keyId}`)
      await berth.call('DELETE', `/webhooks/${webhookId}`)
    },
  }
}
