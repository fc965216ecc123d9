import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyedInfo } from '../support/berth.ts'
import { END_SIGNAL } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { receiver } from '../support/receiver.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'
import type { TaskEvent } from '../support/tasks.ts'

/** How often berth is killed amid tasks that come and go. */
const KILLS = 15

/** Tasks that are begun in each life. */
const TASKS = 6

const RESULT = 'berth ended unexpectedly while the task ran.'

let folder: string
let berthNow: ServeProcess | undefined
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-tasks-crash-'))
})
// A test that fails leaves one running.
afterEach(() => kill(END_SIGNAL))
afterAll(async () => {
  await until(() => processesOf(folder).length === 0, 'no process is left')
  rmSync(folder, { recursive: true, force: true })
})

function start(data: string): Promise<KeyedInfo> {
  const where = ['--port', '0', '--data', join(folder, data)]
  berthNow = serve([...where, '--allow-local-webhooks', '--log-level', 'error'])
  return berthNow.ready
}

async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  berthNow?.child.kill(signal)
  await berthNow?.child.exited
}

async function control(info: KeyedInfo, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' }
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return (await (await fetch(`${info.base_url}/_berth${path}`, init)).json()) as any
}

test('kill -9 fails tasks that run, await input, are held or wait; the next berth says so, and tells of it', async () => {
  await using hooks = await receiver()
  const info = await start('states')
  expect((await call(info, 'POST', '/webhooks', { url: hooks.url })).status).toBe(201)
  await control(info, 'PUT', '/scenarios', { scenarios: [{ match: 'held', steps: [{ hold: true }] }] })
  const { id: server } = (await call(info, 'POST', '/servers')).body
  const path = `/servers/${server}/tasks`
  const begin = async (goal: string) => (await call(info, 'POST', path, { goal })).body.task_id as string
  const eventsOf = async (info: KeyedInfo, id: string): Promise<TaskEvent[]> =>
    (await call(info, 'GET', `${path}/${id}/events`)).body.events
  const running = await begin('run: echo begun; sleep 600')
  const asking = await begin('ask: Who kills?')
  const held = await begin('held')
  const waiting = await begin('wait: 1h')
  const done = await begin('complete: before')
  await until(async () => {
    const { tasks } = (await call(info, 'GET', path)).body
    const statuses = tasks.map(({ status }: { status: string }) => status).sort()
    return statuses.join() === 'awaiting_input,completed,running,running,running'
  }, 'each is where it is to be')
  for (const [id, count] of [
    [running, 2],
    [held, 2],
  ] as const)
    await until(async () => (await eventsOf(info, id)).length === count, 'it is under way')
  await kill()

  const next = await start('states')
  for (const id of [running, asking, held, waiting]) {
    const { task } = (await call(next, 'GET', `${path}/${id}`)).body
    expect(task).toMatchObject({ id, status: 'failed', result: RESULT })
    expect('question' in task).toBe(false)
    const events = await eventsOf(next, id)
    expect(events.at(-1)).toMatchObject({ type: 'status', status: 'failed', result: RESULT })
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    expect((await call(next, 'POST', `${path}/${id}/input`, { answer: 'x' })).status).toBe(400)
    expect((await call(next, 'POST', `${path}/${id}/cancel`)).status).toBe(400)
  }
  expect((await call(next, 'GET', `${path}/${done}`)).body.task.result).toBe('before')
  const failures = () => hooks.received.filter(({ payload }) => payload.event === 'task.failed')
  await until(
    () => new Set(failures().map(({ payload }) => payload.task_id)).size === 4,
    'all is told',
    20_000,
  )
  for (const { payload } of failures()) expect(payload).toMatchObject({ server_id: server, result: RESULT })
  expect(new Set(failures().map(({ headers }) => headers['webhook-id'])).size).toBe(4)
  const left = await call(next, 'POST', `/servers/${server}/exec`, { command: 'pgrep -x sleep || true' })
  expect(left.body.stdout).toBe('')
}, 120_000)

test(`${KILLS} times kill -9 amid tasks leave each that was acknowledged with one beginning and one end`, async () => {
  let info = await start('many')
  const { id: server } = (await call(info, 'POST', '/servers')).body
  const path = `/servers/${server}/tasks`
  const known = new Set<string>()
  for (let life = 0; life < KILLS; life += 1) {
    const goals = ['complete: x', 'fail: x', 'run: echo x', 'run: sleep 600', 'ask: x?', 'write: x <<< x']
    const asked = Array.from({ length: TASKS }, async (_, n) => {
      const goal = goals[n % goals.length]
      const answer = await call(info, 'POST', path, { goal }).catch(() => null)
      if (answer?.status === 201) known.add(answer.body.task_id)
    })
    await Promise.race(asked)
    await Bun.sleep((life % 5) * 12)
    await kill()
    await Promise.all(asked)
    info = await start('many')
  }
  const { tasks } = (await call(info, 'GET', path)).body
  const ids = new Set(tasks.map(({ id }: { id: string }) => id))
  expect([...known].filter((id) => !ids.has(id))).toEqual([])
  // On a busy machine a life acknowledges the one task that is waited for.
  expect(known.size).toBeGreaterThanOrEqual(KILLS)
  const { events } = await control(info, 'GET', '/events?limit=10000')
  for (const { id, status } of tasks) {
    const names = events
      .filter(({ data }: { data: { task_id?: string } }) => data.task_id === id)
      .map(({ event }: { event: string }) => event)
    expect([id, ...names]).toEqual([id, `task.${status}`, 'task.created'])
    const transcript: TaskEvent[] = (await call(info, 'GET', `${path}/${id}/events`)).body.events
    expect(transcript.at(-1)).toMatchObject({ type: 'status', status })
    expect(
      transcript.filter(
        ({ type, status }) => type === 'status' && status !== 'running' && status !== 'awaiting_input',
      ),
    ).toHaveLength(1)
  }
  const { creditsUsed } = (await call(info, 'GET', `/servers/${server}`)).body.server
  expect(creditsUsed).toBeGreaterThanOrEqual(0.1 * tasks.length - 1e-9)
  expect(creditsUsed).toBeLessThan(0.1 * tasks.length + 0.5)
}, 300_000)
