import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { berthForTests, testBerth } from '../support/berth.ts'
import { killServer, until } from '../support/processes.ts'
import { setScenarios, TaskCalls } from '../support/tasks.ts'

const berth = await berthForTests({ flags: { plan: { servers: 100 }, 'idle-timeout': '15m' } })
await setScenarios(berth, [{ match: 'held', steps: [{ hold: true }] }])

/** Goals of tasks that are in the middle of their work for as long as one looks. */
const MIDDLES = {
  'while a command runs': 'run: echo begun; sleep 600',
  'while it awaits input': 'ask: What now?',
  'while it is held': 'held',
  'while it waits for time to pass': 'wait: 30d',
}

/** A new server with a task in the middle of its work. */
async function inTheMiddle(goal: string): Promise<{ tasks: TaskCalls; id: string }> {
  const tasks = new TaskCalls(berth, await berth.server())
  const id = await tasks.begin(goal)
  await until(async () => {
    const events = await tasks.events(id)
    return events.length > 1 || goal.startsWith('wait')
  }, 'it is under way')
  return { tasks, id }
}

const act = (serverId: string, action: string) =>
  berth.call('POST', `/servers/${serverId}/actions`, { action })

/** Returns the events of a server and its tasks that webhooks receive, oldest first. */
async function told(serverId: string): Promise<string[]> {
  const { events } = (await berth.control('GET', '/events?limit=1000')).body
  return events
    .filter(({ data }: { data: { server_id?: string } }) => data.server_id === serverId)
    .map(({ event }: { event: string }) => event)
    .reverse()
}

describe.each(Object.entries(MIDDLES))('%s', (_, goal) => {
  test.each(['stop', 'restart'])(
    'a %s fails the task and says why, before the server is said to stop',
    async (action) => {
      const { tasks, id } = await inTheMiddle(goal)
      expect((await act(tasks.serverId, action)).status).toBe(200)
      const task = await tasks.get(id)
      expect(task).toMatchObject({ status: 'failed', result: 'The server stopped while the task ran.' })
      expect('question' in task).toBe(false)
      expect((await tasks.events(id)).at(-1)).toMatchObject({
        type: 'status',
        status: 'failed',
        result: task.result,
      })
      expect(await told(tasks.serverId)).toEqual([
        'server.created',
        'task.created',
        'task.failed',
        'server.stopped',
      ])
    },
  )

  test('the deletion of the server takes it along, and tells that it failed', async () => {
    const { tasks, id } = await inTheMiddle(goal)
    const followed = await tasks.follow(id)
    await followed.until(({ event }) => event === 'status')
    expect((await berth.call('DELETE', `/servers/${tasks.serverId}`)).status).toBe(200)
    expect((await berth.call('GET', `${tasks.path}/${id}`)).status).toBe(404)
    expect(await told(tasks.serverId)).toEqual([
      'server.created',
      'task.created',
      'task.failed',
      'server.deleted',
    ])
    // Its followers are notified, too.
    expect((await followed.rest()).at(-1)?.data).toMatchObject({
      type: 'status',
      status: 'failed',
      result: 'The server was deleted while the task ran.',
    })
  })

  test('the budget cap fails it and says so', async () => {
    const { id: accountId, api_key } = (await berth.control('POST', '/accounts')).body
    const headers = { authorization: `Bearer ${api_key}` }
    const server = (await berth.call('POST', '/servers', {}, headers)).body.id
    const path = `/servers/${server}/tasks`
    const id = (await berth.call('POST', path, { goal }, headers)).body.task_id
    const get = async () => (await berth.call('GET', `${path}/${id}`, undefined, headers)).body.task
    await berth.control('PATCH', `/accounts/${accountId}`, { budget_cap: 0.1 })
    await until(async () => (await get()).status === 'failed', 'it has failed')
    expect((await get()).result).toBe('The budget of the account is used up: its servers were put to sleep.')
    const names = await told(server)
    expect(names.filter((name) => name === 'task.failed')).toHaveLength(1)
    expect(names.indexOf('task.failed')).toBeLessThan(names.indexOf('server.stopped'))
  })
})

test('a task whose own charge reaches the cap fails, and says so', async () => {
  const { api_key } = (
    await berth.control('POST', '/accounts', { budget_cap: 0.1, plan: { credits_per_hour: { small: 0 } } })
  ).body
  const headers = { authorization: `Bearer ${api_key}` }
  const server = (await berth.call('POST', '/servers', {}, headers)).body.id
  const path = `/servers/${server}/tasks`
  const { status, body } = await berth.call('POST', path, { goal: 'run: sleep 600' }, headers)
  expect(status).toBe(201)
  const get = async () => (await berth.call('GET', `${path}/${body.task_id}`, undefined, headers)).body.task
  await until(async () => (await get()).status === 'failed', 'it has failed')
  expect((await get()).result).toContain('budget')
  expect((await berth.call('POST', path, { goal: 'x' }, headers)).status).toBe(402)
})

test('a stop that comes before a server is awake for a task leaves it asleep', async () => {
  const serverId = await berth.server()
  const tasks = new TaskCalls(berth, serverId)
  for (let round = 0; round < 10; round += 1) {
    await act(serverId, 'stop')
    const starting = act(serverId, 'start')
    await Bun.sleep(1)
    const stopping = act(serverId, 'stop')
    const id = await tasks.begin('run: sleep 600')
    await Promise.all([starting, stopping])
    // Whichever came first: a server is up for a task that runs, or for none.
    const { status } = await tasks.get(id)
    if (status === 'failed') await berth.exec(await berth.server(), 'true')
    const { server } = (await berth.call('GET', `/servers/${serverId}`)).body
    expect([status, server.status]).toEqual(
      status === 'failed' ? ['failed', 'sleeping'] : ['running', 'running'],
    )
  }
})

test('a server with a task is not idle, and is so again when the task is over', async () => {
  const { tasks, id } = await inTheMiddle('ask: Anybody?')
  const status = async () => (await berth.call('GET', `/servers/${tasks.serverId}`)).body.server.status
  await berth.control('POST', '/clock', { advance: '2h' })
  expect([(await tasks.get(id)).status, await status()]).toEqual(['awaiting_input', 'running'])
  await tasks.answer(id, 'yes')
  await tasks.ends(id)
  await berth.control('POST', '/clock', { advance: '16m' })
  expect(await status()).toBe('sleeping')
  expect((await tasks.get(id)).status).toBe('completed')
})

test('a server that is killed fails its tasks', async () => {
  const { tasks, id } = await inTheMiddle('ask: Still there?')
  const busy = await tasks.begin('run: sleep 600')
  await until(async () => (await tasks.events(busy)).length > 1, 'it is under way')
  killServer(berth.dataDir, tasks.serverId)
  for (const one of [id, busy]) {
    const task = await tasks.ends(one)
    expect(task.status).toBe('failed')
    expect(task.result).not.toBe('')
    expect((await tasks.events(one)).at(-1)).toMatchObject({ type: 'status', status: 'failed' })
    expect(await tasks.told(one)).toEqual(['task.created', 'task.failed'])
  }
  expect((await tasks.run('complete: back')).result).toBe('back')
})

test('a server that does not wake makes the task failed, with the reason', async () => {
  const tasks = new TaskCalls(berth, await berth.server())
  await act(tasks.serverId, 'stop')
  const [handle] = Array.from(
    new Bun.Glob(`servers/${tasks.serverId}*`).scanSync({ cwd: berth.dataDir, onlyFiles: false }),
  )
  rmSync(join(berth.dataDir, handle ?? 'none'), { recursive: true })
  const { status, body } = await tasks.create('complete: x')
  expect([status, body.status]).toEqual([201, 'failed'])
  const task = await tasks.get(body.task_id)
  expect(task.result).toContain('could not be started')
  expect(await tasks.told(task.id)).toEqual(['task.created', 'task.failed'])
  expect((await tasks.events(task.id)).at(-1)).toMatchObject({ status: 'failed', result: task.result })
})

test('an orderly stop of berth fails what runs, tells who follows, and the next berth finds it so', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-tasks-'))
  try {
    await using first = await testBerth({ dataDir })
    const tasks = new TaskCalls(first, await first.server())
    const id = await tasks.begin('ask: Who stops?')
    await tasks.reaches(id, 'awaiting_input')
    const followed = await tasks.follow(id)
    await followed.until(({ event }) => event === 'question')
    const rest = followed.rest()
    await first.stop()
    const result = 'berth was stopped while the task ran.'
    expect((await rest).at(-1)?.data).toMatchObject({ type: 'status', status: 'failed', result })
    await using second = await testBerth({ dataDir })
    const found = new TaskCalls(second, tasks.serverId)
    expect(await found.get(id)).toMatchObject({ status: 'failed', result })
    expect(await found.told(id)).toEqual(['task.created', 'task.failed'])
    expect(await found.events(id)).toEqual(followed.all.flatMap(({ data }) => ('seq' in data ? [data] : [])))
    expect((await found.run('complete: again')).result).toBe('again')
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
