import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { setScenarios, TaskCalls } from '../support/tasks.ts'

const berth = await berthForTests({ flags: { plan: { servers: 100 } } })
const serverId = await berth.server()
const tasks = new TaskCalls(berth, serverId)

const MISSING = 'task_00000000000000000000000000'
/** The most characters of a goal. */
const LONGEST = 100_000

const usedBy = async (id: string): Promise<number> =>
  (await berth.control('GET', '/accounts')).body.accounts.find((one: { id: string }) => one.id === id)
    .credits_used

/** Another account with a key of its own, as headers. */
async function account(wishes: object = {}) {
  const { id, api_key } = (await berth.control('POST', '/accounts', wishes)).body
  return { id, headers: { authorization: `Bearer ${api_key}` } }
}

/** A key of the first account that reaches only these servers, as headers. */
async function scopedKey(servers: string[]) {
  const { body } = await berth.call('POST', '/keys', { label: 'scoped', allowed_server_ids: servers })
  return { authorization: `Bearer ${body.key}` }
}

describe('create', () => {
  test('runs at once and is completed, with exactly the fields of the specification', async () => {
    const goal = 'write: out/a.txt <<< hello\nrun: cat out/a.txt\ncomplete: it is done'
    const created = await tasks.create(goal)
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      task_id: expect.stringMatching(/^task_[0-9a-hjkmnp-tv-z]{26}$/),
      status: 'running',
    })
    const task = await tasks.ends(created.body.task_id)
    expect(task).toEqual({
      id: created.body.task_id,
      serverId,
      goal,
      status: 'completed',
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      result: 'it is done',
    })
    expect((await berth.exec(serverId, 'cat out/a.txt')).stdout).toBe('hello')
  })

  test('a goal that is not reached is failed, with the reason as its result', async () => {
    const task = await tasks.run('run: echo no luck >&2; exit 7')
    expect(task.status).toBe('failed')
    expect(task.result).toContain('exit code 7')
    expect(task.result).toContain('no luck')
    expect(await tasks.run('fail: not today')).toMatchObject({ status: 'failed', result: 'not today' })
  })

  test('a goal may have 100,000 characters, of any kind', async () => {
    const goal = `complete: the long one\n${'ü𝄞'.repeat((LONGEST - 24) / 2)}x`
    expect(Array.from(goal).length).toBe(LONGEST)
    expect((await berth.call('POST', tasks.path, { goal: `${goal}x` })).status).toBe(400)
    const task = await tasks.run(goal)
    expect(task.result).toBe('the long one')
    expect(task.goal === goal).toBe(true)
  })

  test('no body and no JSON are refused with 400', async () => {
    expect((await berth.call('POST', tasks.path)).status).toBe(400)
    const response = await berth.fetch(tasks.path, { method: 'POST', body: 'goal=x' })
    expect(response.status).toBe(400)
  })

  test('the same Idempotency-Key makes one task', async () => {
    const headers = { 'idempotency-key': 'once-only' }
    const [first, second] = [
      await tasks.create('complete: one', headers),
      await tasks.create('complete: one', headers),
    ]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.body).toEqual(first.body)
    expect((await tasks.list()).filter(({ goal }) => goal === 'complete: one')).toHaveLength(1)
    expect((await tasks.create('complete: two', headers)).status).toBe(400)
  })

  test('a sleeping server is woken', async () => {
    const asleep = new TaskCalls(berth, await berth.server())
    await berth.call('POST', `/servers/${asleep.serverId}/actions`, { action: 'stop' })
    const task = await asleep.run('run: echo up > up.txt\ncomplete: woke')
    expect(task).toMatchObject({ status: 'completed', result: 'woke' })
    expect((await berth.call('GET', `/servers/${asleep.serverId}`)).body.server.status).toBe('running')
  })

  test('lists newest first, of the server alone', async () => {
    const other = new TaskCalls(berth, await berth.server())
    expect(await other.list()).toEqual([])
    const ids = [
      await other.begin('complete: 1'),
      await other.begin('complete: 2'),
      await other.begin('fail: 3'),
    ]
    for (const id of ids) await other.ends(id)
    const listed = await other.list()
    expect(listed.map(({ id }) => id)).toEqual(ids.toReversed())
    for (const task of listed) expect(task).toEqual(await other.get(task.id))
    expect((await tasks.list()).some(({ id }) => ids.includes(id))).toBe(false)
  })

  test('several run at once on one server', async () => {
    const goals = ['a', 'b', 'c'].map(
      (name, at, all) => `run: touch ${name}; until [ -e ${all[(at + 1) % 3]} ]; do sleep 0.02; done`,
    )
    const ended = await Promise.all(goals.map((goal) => tasks.run(goal)))
    expect(ended.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
  })
})

describe('events and charge', () => {
  test('task.created comes before task.completed, each once, with what fits', async () => {
    const id = await tasks.begin('complete: fine')
    await tasks.ends(id)
    expect(await tasks.told(id)).toEqual(['task.created', 'task.completed'])
    const { events } = (await berth.control('GET', '/events?event=task.completed&limit=1')).body
    expect(events[0].data).toEqual({ task_id: id, server_id: serverId, status: 'completed', result: 'fine' })
    const created = (await berth.control('GET', '/events?event=task.created&limit=1')).body.events[0]
    expect(created.data).toEqual({ task_id: id, server_id: serverId, status: 'running' })
  })

  test('task.failed comes once, and nothing of a task that was cancelled', async () => {
    const failed = await tasks.begin('fail: no')
    await tasks.ends(failed)
    expect(await tasks.told(failed)).toEqual(['task.created', 'task.failed'])
    const cancelled = await tasks.begin('ask: Go on?')
    await tasks.cancel(cancelled)
    expect(await tasks.told(cancelled)).toEqual(['task.created'])
  })

  test('a task costs 0.1 credits, once, whatever becomes of it', async () => {
    const { id, headers } = await account({ plan: { credits_per_hour: { small: 0 } } })
    const server = (await berth.call('POST', '/servers', {}, headers)).body.id
    const give = (goal: unknown) => berth.call('POST', `/servers/${server}/tasks`, { goal }, headers)
    const over = async () =>
      (await berth.call('GET', `/servers/${server}/tasks`, undefined, headers)).body.tasks.every(
        (task: { status: string }) => !['running'].includes(task.status),
      )
    expect(await usedBy(id)).toBe(0)
    for (const goal of ['complete: x', 'fail: x', 'ask: x?']) await give(goal)
    await give('')
    await until(over, 'they are over')
    expect(await usedBy(id)).toBeCloseTo(0.3, 6)
    const { creditsUsed } = (await berth.call('GET', `/servers/${server}`, undefined, headers)).body.server
    expect(creditsUsed).toBeCloseTo(0.3, 6)
  })

  test('at the cap it is refused with 402, and nothing is made', async () => {
    const { id, headers } = await account()
    const server = (await berth.call('POST', '/servers', {}, headers)).body.id
    await berth.control('PATCH', `/accounts/${id}`, { budget_cap: 1, credits_used: 1 })
    const before = (await berth.control('GET', '/events?limit=1000')).body.events.length
    const answer = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'complete: x' }, headers)
    expect([answer.status, answer.body.error]).toEqual([402, 'budget_exceeded'])
    expect((await berth.call('GET', `/servers/${server}/tasks`, undefined, headers)).body.tasks).toEqual([])
    const after = (await berth.control('GET', '/events?limit=1000')).body.events
    expect(after.slice(0, after.length - before).map(({ event }: { event: string }) => event)).not.toContain(
      'task.created',
    )
    expect(await usedBy(id)).toBe(1)
  })
})

describe('who reaches it', () => {
  const CALLS: { method: string; path: string; body?: object }[] = [
    { method: 'GET', path: '' },
    { method: 'POST', path: '', body: { goal: 'complete: x' } },
    { method: 'GET', path: '/TASK' },
    { method: 'POST', path: '/TASK/input', body: { answer: 'x' } },
    { method: 'POST', path: '/TASK/cancel' },
    { method: 'GET', path: '/TASK/events' },
  ]

  test.each(CALLS)(
    '$method …/tasks$path without a key is 401, and 404 for whom it is not for',
    async ({ method, path, body }) => {
      const id = await tasks.begin('ask: Anybody?')
      const other = await berth.server()
      const call = (server: string, task: string, headers?: Record<string, string>) =>
        berth.call(method, `/servers/${server}/tasks${path.replace('TASK', task)}`, body, headers)
      expect((await call(serverId, id, { authorization: 'Bearer sk_live_none' })).status).toBe(401)
      const notFound = [
        await call(serverId, id, (await account()).headers),
        await call(serverId, id, await scopedKey([other])),
        await call('srv_00000000000000000000000000', id),
        ...(path === '' ? [] : [await call(other, id), await call(serverId, MISSING)]),
      ]
      for (const answer of notFound) expect([answer.status, answer.body.error]).toEqual([404, 'not_found'])
      expect((await tasks.reaches(id, 'awaiting_input')).question).toBe('Anybody?')
      await tasks.cancel(id)
    },
  )

  test("a key for the server alone works with the server's tasks", async () => {
    const headers = await scopedKey([serverId])
    const created = await berth.call('POST', tasks.path, { goal: 'ask: Sure?' }, headers)
    expect(created.status).toBe(201)
    const id = created.body.task_id
    await tasks.reaches(id, 'awaiting_input')
    const input = await berth.call('POST', `${tasks.path}/${id}/input`, { answer: 'yes' }, headers)
    expect(input.status).toBe(200)
    await tasks.ends(id)
    const events = await berth.call('GET', `${tasks.path}/${id}/events`, undefined, headers)
    expect(events.body.events.length).toBeGreaterThan(3)
  })
})

describe('release', () => {
  test('a task that is held goes on when it is released', async () => {
    await setScenarios(berth, [
      { match: 'hold on', steps: [{ hold: true }, { hold: true }, { complete: 'let go' }] },
    ])
    const id = await tasks.begin('hold on')
    const release = () => berth.control('POST', `/tasks/${id}/release`)
    await until(async () => (await release()).status === 200, 'it is held')
    expect((await tasks.get(id)).status).toBe('running')
    await until(async () => (await release()).status === 200, 'it is held again')
    expect((await tasks.ends(id)).result).toBe('let go')
    const again = await release()
    expect([again.status, again.body.error]).toEqual([400, 'bad_request'])
    expect(again.body.message).toContain('completed')
  })

  test('one that is not held is 400, one that is not there 404, and an API key is not enough', async () => {
    const id = await tasks.begin('ask: Waiting?')
    expect((await berth.control('POST', `/tasks/${id}/release`)).status).toBe(400)
    expect((await berth.control('POST', `/tasks/${MISSING}/release`)).status).toBe(404)
    expect((await berth.call('POST', `/_berth/tasks/${id}/release`)).status).toBe(401)
    await tasks.cancel(id)
  })
})
