import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Receiver, receiver } from '../support/receiver.ts'
import { serveForTests, start } from './command.ts'

const berth = await serveForTests([
  '--isolation',
  'none',
  '--freeze',
  '2030-01-10T00:00:00Z',
  '--allow-local-webhooks',
])

const json = (...args: string[]) => berth.json(...args)
const text = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await berth.run(args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

test('an account is made, changed, listed and deleted from the terminal', async () => {
  const created = await text('accounts', 'create', '--label', 'worker 1', '--plan', '{"servers":2}')
  const [, id = ''] = /^ID +(acct_\S+)$/m.exec(created) ?? []
  const [, key = ''] = /^API key +(sk_live_\S+)$/m.exec(created) ?? []
  const own = await berth.run(['servers', 'list', '--json'], {
    env: { BERTH_BASE_URL: berth.info.base_url, BERTH_API_KEY: key },
  })
  expect(JSON.parse(own.stdout)).toEqual({ servers: [] })
  expect(
    await json('accounts', 'update', id, '--limits', '{"servers":1}', '--credits-used', '9.5'),
  ).toMatchObject({
    plan: { servers: 1 },
    credits_used: 9.5,
  })
  const shown = await text('accounts', 'update', id, '--budget-cap', '12')
  expect(shown).toContain('9.5 of 12 in 2030-01')
  expect(
    (await json('accounts', 'update', id, '--plan', 'default', '--budget-cap', 'default')).plan.servers,
  ).toBe(50)
  expect(await text('accounts')).toMatch(new RegExp(`^${id} +worker 1 +0 +9\\.5 +1000 +2030-01-10`, 'm'))
  expect(await text('accounts', 'rm', id)).toBe(`Deleted ${id}.\n`)
  expect((await json('accounts')).accounts.length).toBe(1)
})

test('the clock is shown, moved, set, frozen and reset', async () => {
  expect((await json('clock')).now).toBe('2030-01-10T00:00:00.000Z')
  expect((await json('clock', 'advance', '2h')).now).toBe('2030-01-10T02:00:00.000Z')
  expect(await json('clock', 'set', '2030-02-01T00:00:00Z')).toMatchObject({ frozen: true })
  expect(await json('clock', 'unfreeze')).toMatchObject({ frozen: false })
  expect(await json('clock', 'freeze')).toMatchObject({ frozen: true })
  expect(await json('clock', 'reset')).toMatchObject({ now: '2030-01-10T00:00:00.000Z', frozen: true })
  expect(await text('clock', 'show')).toMatch(/^Now +2030-01-10T00:00:00\.000Z\nRuns +no, it is stopped/)
})

test('scenarios are set from YAML, JSON, a fixtures file and standard input, and cleared', async () => {
  expect(await text('scenarios')).toStartWith('No scenarios.')
  writeFileSync(join(berth.cwd, 'list.json'), '[{"match":"a","steps":[{"complete":"b"}]}]')
  expect(await text('scenarios', 'set', 'list.json')).toBe('Set 1 scenario; 1 hold now.\n')
  writeFileSync(
    join(berth.cwd, 'all.yaml'),
    'scenarios:\n  - name: n\n    match: {glob: "d*"}\n    steps: [{hold: true}]\n',
  )
  expect(await json('scenarios', 'set', 'all.yaml')).toMatchObject({
    scenarios: [{ name: 'n', source: 'control' }],
  })
  expect(await text('scenarios')).toMatch(/^n +\{"glob":"d\*"\} +1 +control$/m)
  const stdin = new TextEncoder().encode(
    '[{"match":"a","steps":[{"complete":"b"}]}, {"match":"c","steps":[]}]',
  )
  const piped = await berth.run(['scenarios', 'set', '-'], { stdin })
  expect(piped.stderr).toContain('scenarios[1].steps')
  expect((await json('scenarios')).scenarios.length).toBe(1)
  expect(await text('scenarios', 'clear')).toBe('Cleared; 0 of files hold.\n')
})

test.each([
  ['none.json', undefined, 'There is no file none.json.'],
  ['bad.yaml', 'scenarios: [', 'bad.yaml is not written as YAML or JSON is'],
  ['other.json', '{"accounts":[]}', 'other.json has no scenarios'],
])('a file of scenarios that cannot be one is refused: %s', async (name, content, sentence) => {
  if (content !== undefined) writeFileSync(join(berth.cwd, name), content)
  const { exitCode, stdout, stderr } = await berth.run(['scenarios', 'set', name])
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toStartWith('berth: ')
  expect(stderr).toContain(sentence)
})

test('a task that is held is released', async () => {
  writeFileSync(
    join(berth.cwd, 'hold.json'),
    '[{"match":"slow","steps":[{"hold":true},{"complete":"done"}]}]',
  )
  await text('scenarios', 'set', 'hold.json')
  const server = await berth.server()
  const { task_id: id } = await json('tasks', 'run', 'slow', '--server', server, '-d')
  const following = berth.run(['tasks', 'events', id, '--follow', '--json'])
  expect(await text('tasks', 'release', id)).toBe(`Released ${id}.\n`)
  await following
  expect((await json('tasks', 'get', id)).task).toMatchObject({ status: 'completed', result: 'done' })
  const again = await berth.run(['tasks', 'release', id])
  expect(again).toMatchObject({
    exitCode: 1,
    stderr: 'berth: The task is not held: it is completed. (bad_request)\n',
  })
})

describe('events and deliveries', () => {
  let hooks: Receiver
  let webhook: string
  beforeAll(async () => {
    hooks = await receiver()
    webhook = (await json('webhooks', 'create', hooks.url, '--events', 'server.created')).id
  })
  afterAll(() => hooks[Symbol.asyncDispose]())

  test('events are printed oldest first, filtered, and followed as they come', async () => {
    const server = await berth.server()
    await text('servers', 'stop', server)
    const lines = (await text('events')).trimEnd().split('\n')
    expect(lines.at(-1)).toMatch(/^2030-01-10T00:00:00\.000Z {2}evt_\S+ {2}server\.stopped {2}\{/)
    expect(lines.at(-2)).toContain('server.created')
    const [one] = (await text('events', '--event', 'server.stopped', '--limit', '1', '--json')).split('\n')
    const { id, data } = JSON.parse(one ?? '')
    expect(data.server_id).toBe(server)
    // What came after the one of before the stop is the stop: the stream has it without a wait.
    const before = /evt_\S+/.exec(lines.at(-2) ?? '')?.[0] ?? ''
    const following = start(['events', '-f', '--json', '--after', before, '--limit', '2'], { cwd: berth.cwd })
    const streamed = following.stdout.text()
    await text('servers', 'start', server)
    const other = await berth.server()
    const [first, second] = (await streamed).trimEnd().split('\n')
    expect(JSON.parse(first ?? '').id).toBe(id)
    expect(JSON.parse(second ?? '').data.server_id).toBeOneOf([server, other])
    expect(await following.exited).toBe(0)
  })

  test('Ctrl-C ends following', async () => {
    const following = start(['events', '-f'], { cwd: berth.cwd })
    const reader = following.stdout.getReader()
    // Until the stream is open, what comes is not told: events go on until one is.
    const read = reader.read()
    let told = false
    void read.then(() => {
      told = true
    })
    while (!told) await berth.server().then((server) => text('servers', 'rm', server))
    following.kill('SIGINT')
    expect(await following.exited).toBe(130)
  })

  test('deliveries are listed and shown with what was sent and what came back, and tried again', async () => {
    await hooks.got(1)
    const all = await json('deliveries', '--webhook', webhook, '--status', 'delivered')
    const delivery = all.deliveries.at(-1)
    const of = ['deliveries', '--webhook', hooks.url, '--event'] as const
    expect((await json(...of, 'server.created')).deliveries.at(-1).id).toBe(delivery.id)
    expect((await json(...of, 'server.stopped')).deliveries).toEqual([])
    const shown = await text('deliveries', 'show', delivery.id)
    expect(shown).toContain('server.created')
    expect(shown).toMatch(/Attempt 1, .*: 200 after \d+ ms/)
    expect(shown).toContain('  webhook-signature: v1,')
    expect(await text('deliveries')).toMatch(new RegExp(`^${delivery.id} +delivered +server\\.created`, 'm'))
    const count = hooks.received.length
    expect(await text('deliveries', 'retry', delivery.id)).toContain(`berth deliveries show ${delivery.id}`)
    const received = await hooks.got(count + 1)
    expect(received.at(-1)?.headers['webhook-id']).toBe(delivery.event_id)
    const none = await berth.run(['deliveries', 'show', 'dlv_none'])
    expect(none).toMatchObject({
      exitCode: 1,
      stderr: 'berth: The delivery "dlv_none" does not exist. (not_found)\n',
    })
  })
})

test.each([
  [['accounts', 'create', '--plan', 'x'], 'Expected a JSON object such as \'{"servers":1}\'.'],
  [['accounts', 'create', '--budget-cap', 'much'], 'Expected a number of credits'],
  [['accounts', 'update', 'acct_1'], 'Say what to change'],
  [['events', '--event', 'task.exploded'], 'Allowed choices are'],
  [['events', '--limit', '0'], 'Expected a whole number from 1.'],
  [['clock', 'advnce', '2h'], '(Did you mean advance?)'],
])('wrong usage exits with 2 and says what is wrong: %j', async (args, message) => {
  const { exitCode, stdout, stderr } = await berth.run(args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(message)
})

test('an API key is not taken, and the token is never shown', async () => {
  const { exitCode, stderr } = await berth.run(['clock', '--admin-token', 'admin_secret'])
  expect(exitCode).toBe(1)
  expect(stderr).toContain('takes the admin token')
  expect(stderr).not.toContain('admin_secret')
})
