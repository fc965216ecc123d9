import { Database as Sqlite } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { berthForTests } from '../support/berth.ts'
import { begun, HOLD, letGo, over, reaches, shownBuild } from '../support/builds.ts'
import { until } from '../support/processes.ts'
import { TaskCalls } from '../support/tasks.ts'

const berth = await berthForTests()

/** Keeps a change from being written until the returned function is called, as a full disk does. */
function full(change: string): () => void {
  const run = (sql: string): void => {
    const sqlite = new Sqlite(join(berth.dataDir, 'berth.db'))
    sqlite.run('PRAGMA busy_timeout = 5000')
    sqlite.run(sql)
    sqlite.close()
  }
  run(`CREATE TRIGGER full BEFORE ${change} BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`)
  return () => run('DROP TRIGGER full')
}

const TASKS = 'UPDATE ON tasks'

test.each([TASKS, `INSERT ON task_events WHEN NEW.event LIKE '%"running"%'`])(
  'an answer that cannot be written may be given again, and stands there once (%s)',
  async (change) => {
    const tasks = new TaskCalls(berth, await berth.server())
    const id = await tasks.begin('ask: Which?\ncomplete: {{answer}}')
    await tasks.reaches(id, 'awaiting_input')
    const following = await tasks.follow(id)
    const room = full(change)
    expect((await tasks.answer(id, 'red')).status).toBe(500)
    room()
    expect((await tasks.answer(id, 'blue')).status).toBe(200)
    expect((await tasks.ends(id)).result).toBe('blue')
    const events = await tasks.events(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => n + 1))
    expect(events.filter(({ type }) => type === 'answer')).toMatchObject([{ answer: 'blue' }])
    const seen = (await following.rest()).filter(({ data }) => 'seq' in data)
    expect(seen.map(({ data }) => data)).toEqual(events)
  },
)

test('a task is called off when that is written, and not before', async () => {
  const tasks = new TaskCalls(berth, await berth.server())
  const id = await tasks.begin('ask: Which?')
  await tasks.reaches(id, 'awaiting_input')
  const room = full(TASKS)
  expect((await tasks.cancel(id)).status).toBe(500)
  room()
  expect((await tasks.cancel(id)).body.task.status).toBe('cancelled')
})

test('a task whose end cannot be written is over when it can', async () => {
  const tasks = new TaskCalls(berth, await berth.server())
  const id = await tasks.begin('run: until [ -e go ]; do sleep 0.02; done\ncomplete: Done.')
  const room = full(TASKS)
  await berth.exec(tasks.serverId, 'touch go')
  await until(() => berth.log().includes('the end of a task cannot be written yet'), 'its end to be tried')
  expect((await tasks.get(id)).status).toBe('running')
  room()
  expect(await tasks.ends(id)).toMatchObject({ status: 'completed', result: 'Done.' })
  expect(await tasks.told(id)).toEqual(['task.created', 'task.completed'])
})

test('a build whose end cannot be written is over when it can, with its URL, and the next one goes on', async () => {
  const serverId = await berth.server()
  const status = async () => (await berth.call('GET', `/servers/${serverId}`)).body.server.status
  const id = await begun(berth, serverId, `A landing page\n${HOLD}`)
  const next = await begun(berth, serverId, 'Go on')
  await reaches(berth, serverId, id, 'implement')
  const room = full(`UPDATE ON builds WHEN NEW.status = 'completed'`)
  await letGo(berth, serverId)
  await until(
    () => berth.log().includes('the end of a build cannot be written yet'),
    'its end to be tried',
    20_000,
  )
  expect([await status(), (await shownBuild(berth, serverId, next)).status]).toEqual(['building', 'queued'])
  room()
  expect((await over(berth, serverId, id)).url).not.toBeNull()
  expect((await over(berth, serverId, next)).url).not.toBeNull()
  await until(async () => (await status()) === 'running', 'the server runs')
})

test.each([[`UPDATE ON servers WHEN NEW.status = 'sleeping'`], [`INSERT ON events`], [`UPDATE ON projects`]])(
  'a server whose stop cannot be written is stopped, and the stop is written when it can (%s)',
  async (change) => {
    const serverId = await berth.server()
    const status = async () => (await berth.call('GET', `/servers/${serverId}`)).body.server.status
    const act = (action: string) => berth.call('POST', `/servers/${serverId}/actions`, { action })
    const { body: project } = await berth.call('POST', `/servers/${serverId}/projects`, {
      source: { type: 'template', template: 'static-site' },
    })
    const runtime = async () => (await berth.call('GET', `/projects/${project.id}`)).body.runtime_status
    await until(async () => (await runtime()) === 'running', 'the project to run', 30_000)
    const room = full(change)
    expect(await act('stop')).toMatchObject({ status: 200, body: { id: serverId, status: 'sleeping' } })
    expect(berth.log()).toContain('the stop of a server cannot be written yet')
    const { servers } = (await berth.call('GET', '/servers')).body
    expect(servers.find(({ id }: { id: string }) => id === serverId).status).toBe('sleeping')
    room()
    await until(async () => (await runtime()) === 'paused', 'the project to be recorded')
    const told = async () =>
      (await berth.control('GET', '/events?limit=1000')).body.events.filter(
        (one: { event: string }) => one.event === 'server.stopped' && JSON.stringify(one).includes(serverId),
      )
    await until(async () => (await told()).length === 1, 'the event')
    expect(await status()).toBe('sleeping')
    expect(await act('start')).toMatchObject({ status: 200, body: { status: 'running' } })
    expect(await status()).toBe('running')
  },
)

test('a server whose stop could not be written starts again, and one whose sandbox ends by itself sleeps', async () => {
  const serverId = await berth.server()
  const status = async () => (await berth.call('GET', `/servers/${serverId}`)).body.server.status
  const room = full(`UPDATE ON servers WHEN NEW.status = 'sleeping'`)
  expect((await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })).status).toBe(200)
  expect(await berth.exec(serverId, 'echo again')).toMatchObject({ stdout: 'again\n' })
  expect(await status()).toBe('running')
  await berth.control('POST', `/servers/${serverId}/fault`, { kind: 'crash' })
  await until(async () => (await status()) === 'sleeping', 'the end of the sandbox')
  room()
  await Bun.sleep(1_200)
  expect(await status()).toBe('sleeping')
})
