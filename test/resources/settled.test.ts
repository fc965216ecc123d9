import { expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'

/* `wait_ms` of tasks, builds and projects, and `GET /account`. */

const berth = await berthForTests()
const server = await berth.server()
const at = `/servers/${server}`

const taskOf = async (goal: string): Promise<string> =>
  (await berth.call('POST', `${at}/tasks`, { goal })).body.task_id

test('a task is awaited until it has ended, asks, or the time is over', async () => {
  const ends = await taskOf('run: sleep 0.5')
  expect((await berth.call('GET', `${at}/tasks/${ends}?wait_ms=0`)).body.task.status).toBe('running')
  expect((await berth.call('GET', `${at}/tasks/${ends}?wait_ms=30000`)).body.task.status).toBe('completed')
  const asks = await taskOf('ask: Which colour?')
  const { task } = (await berth.call('GET', `${at}/tasks/${asks}?wait_ms=30000`)).body
  expect(task).toMatchObject({ status: 'awaiting_input', question: 'Which colour?' })
  const runs = await taskOf('run: sleep 60')
  const began = performance.now()
  expect((await berth.call('GET', `${at}/tasks/${runs}?wait_ms=200`)).body.task.status).toBe('running')
  expect(performance.now() - began).toBeGreaterThan(190)
  await berth.call('POST', `${at}/tasks/${runs}/cancel`)
})

test('builds and projects are awaited until they go no further', async () => {
  const { build_id } = (await berth.call('POST', `${at}/builds`, { goal: 'write: index.html <<< hi' })).body
  const { build } = (await berth.call('GET', `${at}/builds/${build_id}?wait_ms=30000`)).body
  expect(build.status).toBe('completed')
  const { id } = (await berth.call('POST', `${at}/projects`, { template: 'static-site' })).body
  expect((await berth.call('GET', `/projects/${id}?wait_ms=30000`)).body.init_phase).toBe('ready')
  const blank = (await berth.call('POST', `${at}/projects`, {})).body.id
  expect((await berth.call('GET', `/projects/${blank}?wait_ms=30000`)).body.init_phase).toBeNull()
})

test('a wait over 30 s is refused, and one whose key ends is 401', async () => {
  const { message } = (await berth.call('GET', `${at}/tasks/none?wait_ms=30001`)).body
  expect(message).toContain('expected a whole number from 0 to 30000')
  const key = (await berth.call('POST', '/keys', { label: 'ends' })).body
  const runs = await taskOf('run: sleep 60')
  const waiting = berth.call('GET', `${at}/tasks/${runs}?wait_ms=30000`, undefined, {
    authorization: `Bearer ${key.key}`,
  })
  await Bun.sleep(100)
  await berth.call('DELETE', `/keys/${key.id}`)
  expect((await waiting).status).toBe(401)
  await berth.call('POST', `${at}/tasks/${runs}/cancel`)
})

test('GET /account shows any key its account and itself', async () => {
  const whole = (await berth.call('GET', '/account')).body
  expect(whole).toMatchObject({
    id: expect.stringMatching(/^acct_/),
    plan: { tiers: ['small', 'medium', 'large'] },
    budget_cap: 1000,
    key: { id: expect.stringMatching(/^key_/), scoped: false },
  })
  const key = (await berth.call('POST', '/keys', { label: 'CI', allowed_server_ids: [server] })).body
  const { status, body } = await berth.call('GET', '/account', undefined, {
    authorization: `Bearer ${key.key}`,
  })
  expect([status, body.id, body.key]).toEqual([200, whole.id, { id: key.id, label: 'CI', scoped: true }])
})

test('every response has the version of berth', async () => {
  const { version } = (await berth.control('GET', '/health')).body
  for (const path of ['/servers', '/nowhere', '/_berth/health', '/openapi.json']) {
    const { headers } = await fetch(`${berth.info.base_url}${path}`)
    expect([path, headers.get('x-berth-version')]).toEqual([path, version])
  }
})

test.each(['', '*/*'])('changes are an event stream for a client with Accept %p', async (accept) => {
  const abort = new AbortController()
  for (const [path, token] of [
    ['/changes', berth.info.api_key],
    ['/_berth/changes', berth.info.admin_token],
  ]) {
    const response = await fetch(`${berth.info.base_url}${path}`, {
      headers: { authorization: `Bearer ${token}`, ...(accept ? { accept } : {}) },
      signal: abort.signal,
    })
    expect([path, response.status, response.headers.get('content-type')]).toEqual([
      path,
      200,
      'text/event-stream',
    ])
  }
  abort.abort()
})
