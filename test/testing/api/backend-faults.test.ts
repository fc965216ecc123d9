import { beforeEach, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })
const server = await berth.server()
beforeEach(() => berth.control('DELETE', '/faults'))

/** Has the compute driver fail in one request for an operation. */
async function failing(operation: string): Promise<void> {
  const body = { match: { operation }, effect: { backend: 'fail' }, times: 1 }
  expect((await berth.control('POST', '/faults', body)).status).toBe(201)
}

/** The newest event of a name. */
const eventOf = async (event: string) =>
  (await berth.control('GET', `/events?event=${event}&limit=1`)).body.events[0]?.data

test('a server that cannot be provisioned leaves none, and the next one comes up', async () => {
  await failing('servers.create')
  const { status, body } = await berth.call('POST', '/servers', {})
  expect([status, body.error]).toEqual([502, 'compute_backend_error'])
  expect((await berth.call('GET', '/servers')).body.servers.length).toBe(1)
  const next = await berth.server()
  expect((await berth.call('DELETE', `/servers/${next}`)).status).toBe(200)
})

test('a server that does not start again sleeps, and wakes for the next command', async () => {
  const path = `/servers/${server}`
  await failing('servers.act')
  const { status, body } = await berth.call('POST', `${path}/actions`, { action: 'restart' })
  expect([status, body.error]).toEqual([502, 'compute_backend_error'])
  expect((await berth.call('GET', path)).body.server.status).toBe('sleeping')
  expect(await eventOf('server.stopped')).toMatchObject({ server_id: server })
  await failing('exec.run')
  expect((await berth.call('POST', `${path}/exec`, { command: 'true' })).status).toBe(502)
  expect((await berth.exec(server, 'echo up')).stdout).toBe('up\n')
  // On one that runs the command itself fails.
  await failing('exec.run')
  expect((await berth.call('POST', `${path}/exec`, { command: 'true' })).status).toBe(502)
  expect((await berth.call('GET', path)).body.server.status).toBe('running')
})

test('files, whose operations ask the driver too, cannot be read or written', async () => {
  const path = `/servers/${server}/files`
  await berth.call('PUT', path, { path: 'kept', content: 'as it was' })
  for (const operation of ['files.read', 'files.write', 'files.delete']) await failing(operation)
  const answers = [
    await berth.call('GET', `${path}?path=kept`),
    await berth.call('PUT', path, { path: 'kept', content: 'changed' }),
    await berth.call('DELETE', `${path}?path=kept`),
  ]
  expect(answers.map(({ status, body }) => [status, body.error])).toEqual(
    Array(3).fill([502, 'compute_backend_error']),
  )
  expect((await berth.call('GET', `${path}?path=kept`)).body.content).toBe('as it was')
})

test('a task fails if a fault applies to its request; those of other requests run beside it', async () => {
  const give = async (goal: string): Promise<string> =>
    (await berth.call('POST', `/servers/${server}/tasks`, { goal })).body.task_id
  await failing('tasks.create')
  const ids = [await give('run: echo one'), await give('run: echo two')]
  const ended = []
  for (const id of ids) {
    const path = `/servers/${server}/tasks/${id}`
    await (await berth.fetch(`${path}/events`, { headers: { accept: 'text/event-stream' } })).text()
    ended.push((await berth.call('GET', path)).body.task)
  }
  expect(ended.map(({ status }) => status)).toEqual(['failed', 'completed'])
  expect(ended[0].result).toContain('makes the compute backend fail')
  expect(await eventOf('task.failed')).toMatchObject({ task_id: ids[0] })
})

test('a build fails if a fault applies to its request; the one that waits for it is built', async () => {
  const started: string[] = []
  for (const [at, goal] of ['a page', 'a list', 'a table'].entries()) {
    if (at === 1) await failing('builds.create')
    const { body } = await berth.call('POST', `/servers/${server}/builds`, { goal })
    started.push(body.build_id)
  }
  const outcomes = await Promise.all(
    started.map(async (id) => {
      const path = `/servers/${server}/builds/${id}`
      await until(async () => (await berth.call('GET', path)).body.build.status === 'completed', id, 60_000)
      const { build } = (await berth.call('GET', path)).body
      return [build.url !== null, build.steps.every(({ status }: { status: string }) => status === 'done')]
    }),
  )
  expect(outcomes).toEqual([
    [true, true],
    [false, false],
    [true, true],
  ])
}, 120_000)

test('a project cannot be brought up, and says so by its event', async () => {
  const { body: project } = await berth.call('POST', `/servers/${server}/projects`, { name: 'Unlucky' })
  await failing('projects.create')
  const created = await berth.call('POST', `/servers/${server}/projects`, { template: 'static-site' })
  expect(created.status).toBe(201)
  await until(async () => (await eventOf('project.init_failed'))?.project_id === created.body.id, 'it fails')
  expect((await berth.call('GET', `/projects/${created.body.id}`)).body.init_phase).toBe('failed')
  // Brought up again by a request that is not struck.
  expect((await berth.call('POST', `/projects/${created.body.id}/init`, {})).status).toBe(202)
  await until(
    async () => (await eventOf('project.ready'))?.project_id === created.body.id,
    'it is ready',
    20_000,
  )
  await berth.call('DELETE', `/projects/${project.id}`)
}, 120_000)

test('what cannot be published is not, and what is live stays', async () => {
  const path = `/servers/${server}/deployments`
  await berth.call('PUT', `/servers/${server}/files`, { path: 'index.html', content: 'first' })
  const live = await berth.call('POST', path, {})
  expect(live.status).toBe(201)
  // Files alone need nothing of the backend.
  await berth.call('PUT', `/servers/${server}/files`, { path: 'berth.json', content: '{"build": "true"}' })
  await failing('deployments.create')
  expect((await berth.call('POST', path, {})).status).toBe(502)
  const { publicUrl } = (await berth.call('GET', `/servers/${server}`)).body.server
  expect(await (await fetch(publicUrl)).text()).toContain('first')
})
