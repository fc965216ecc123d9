import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../compute/bench.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-scenarios-'))
const first = join(folder, 'first.yaml')
const second = join(folder, 'second.json')
writeFileSync(first, 'scenarios:\n  - match: hello\n    steps: [{ complete: from the first file }]\n')
writeFileSync(
  second,
  JSON.stringify({
    scenarios: [
      { match: { glob: 'h*' }, steps: [{ complete: 'from the second file' }] },
      { name: 'held', match: 'stand still', steps: [{ hold: true }, { complete: 'released' }] },
    ],
  }),
)
const FROM_FILES = [
  { match: 'hello', steps: [{ complete: 'from the first file' }], source: first },
  { match: { glob: 'h*' }, steps: [{ complete: 'from the second file' }], source: second },
  { name: 'held', match: 'stand still', steps: [{ hold: true }, { complete: 'released' }], source: second },
]

let berth: TestBerth
let server: string
beforeAll(async () => {
  berth = await testBerth({ flags: { isolation: 'none', fixtures: [first, second] } })
  server = await berth.server()
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => berth.control('DELETE', '/scenarios'))

const put = (...scenarios: unknown[]) => berth.control('PUT', '/scenarios', { scenarios })
const all = async () => (await berth.control('GET', '/scenarios')).body.scenarios

/** Gives a goal and follows the task to its end, or until it waits for an answer. */
async function task(goal: string, on = berth, where = server) {
  const { status, body } = await on.call('POST', `/servers/${where}/tasks`, { goal })
  expect(status).toBe(201)
  return settled(body.task_id, on, where)
}

/** The task once it runs no more, told by its event stream, which ends with it. */
async function settled(id: string, on = berth, where = server) {
  const path = `/servers/${where}/tasks/${id}`
  const response = await on.fetch(`${path}/events`, { headers: { accept: 'text/event-stream' } })
  await response.text()
  return (await on.call('GET', path)).body.task
}

describe('/_berth/scenarios', () => {
  test('replaces what the client has read, and nothing if another has set others since', async () => {
    const mine = { name: 'mine', match: { regex: '^a$' }, steps: [{ run: 'ls' }, { complete: 'done' }] }
    const other = { match: 'b', steps: [{ complete: 'other' }] }
    const replace = (scenarios: object[], expected: object[]) =>
      berth.control('PUT', '/scenarios', { scenarios, expected })
    expect((await replace([mine], [])).status).toBe(200)
    expect((await replace([other, mine], [mine])).status).toBe(200)
    const late = await replace([], [mine])
    expect([late.status, late.body.message]).toEqual([
      400,
      'The scenarios that were set are not those in "expected": another client has changed them. Nothing was changed. Read them again.',
    ])
    expect(await all()).toEqual(
      [other, mine].map((one) => ({ ...one, source: 'control' })).concat(FROM_FILES as never),
    )
  })

  test('lists those of files in their order, with their files', async () => {
    expect(await all()).toEqual(FROM_FILES)
    expect((await task('hello')).result).toBe('from the first file')
    expect((await task('hey')).result).toBe('from the second file')
  })

  test('sets scenarios that go before those of files, in place of those set before', async () => {
    const one = { name: 'one', match: 'hello', steps: [{ complete: 'from the control API' }] }
    const two = { match: { regex: '^he' }, steps: [{ run: { command: 'true', expect: 'any' } }] }
    const { status, body } = await put(one, two)
    expect(status).toBe(200)
    expect(body.scenarios).toEqual([
      { ...one, source: 'control' },
      { ...two, source: 'control' },
      ...FROM_FILES,
    ])
    expect(await all()).toEqual(body.scenarios)
    expect((await task('hello')).result).toBe('from the control API')
    expect((await task('hey')).result).toBe('Done: ran true.')
    expect((await put(two)).body.scenarios).toEqual([{ ...two, source: 'control' }, ...FROM_FILES])
    expect((await berth.control('DELETE', '/scenarios')).body).toEqual({ scenarios: FROM_FILES })
    expect((await task('hello')).result).toBe('from the first file')
  })

  test('takes the admin token, no API key', async () => {
    expect((await berth.call('GET', '/_berth/scenarios')).status).toBe(401)
    expect((await berth.call('PUT', '/_berth/scenarios', { scenarios: [] })).status).toBe(401)
    expect((await berth.call('DELETE', '/_berth/scenarios')).status).toBe(401)
    expect(await all()).toEqual(FROM_FILES)
  })

  test('what was set survives a restart; what a file gave goes with the file', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-test-'))
    const one = { match: 'hello', steps: [{ complete: 'still here' }] }
    try {
      await using before = await testBerth({ dataDir, flags: { isolation: 'none', fixtures: [first] } })
      await before.control('PUT', '/scenarios', { scenarios: [one] })
      await before.stop()
      await using after = await testBerth({ dataDir, flags: { isolation: 'none' } })
      expect((await after.control('GET', '/scenarios')).body.scenarios).toEqual([
        { ...one, source: 'control' },
      ])
      expect((await task('hello', after, await after.server())).result).toBe('still here')
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})

describe('a task of the scripted agent', () => {
  test('asks, takes the answer and goes on', async () => {
    await put({
      match: { regex: '^paint (?<what>\\w+)$' },
      steps: [
        { ask: 'Which colour has {{what}}?' },
        { run: 'echo {{answer}} > {{what}}.txt' },
        { complete: '{{what}} is {{answer}}' },
      ],
    })
    const { body } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'paint house' })
    const path = `/servers/${server}/tasks/${body.task_id}`
    const events = await berth.fetch(`${path}/events`, { headers: { accept: 'text/event-stream' } })
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader()
    let seen = ''
    while (!seen.includes('awaiting_input')) seen += (await reader?.read())?.value ?? ''
    const waiting = (await berth.call('GET', path)).body.task
    expect(waiting).toMatchObject({ status: 'awaiting_input', question: 'Which colour has house?' })
    await reader?.cancel()
    expect((await berth.call('POST', `${path}/input`, { answer: '$(id); red' })).status).toBe(200)
    expect(await settled(body.task_id)).toMatchObject({
      status: 'completed',
      result: 'house is $(id); red',
    })
    const { stdout } = await berth.exec(server, 'cat house.txt')
    expect(stdout).toBe('$(id); red\n')
  })

  test('is held until it is released', async () => {
    const { body } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'stand still' })
    const release = () => berth.control('POST', `/tasks/${body.task_id}/release`)
    // Refused until the agent has come to the step.
    await until('the task is held', async () => (await release()).status === 200)
    expect(await settled(body.task_id)).toMatchObject({ status: 'completed', result: 'released' })
  })

  test('obeys directives, fails by them, and says where it knows nothing to do', async () => {
    expect(await task('write: d.txt <<< hi\nrun: cat d.txt\ncomplete: ok')).toMatchObject({
      status: 'completed',
      result: 'ok',
    })
    expect(await task('run: echo no >&2; exit 3')).toMatchObject({
      status: 'failed',
      result: 'The command echo no >&2; exit 3 ended with exit code 3:\nno',
    })
    expect(await task('wait: soon')).toMatchObject({
      status: 'failed',
      result: expect.stringContaining('Line 1 of the goal, "wait: soon": expected a duration'),
    })
    const idle = await task('Make me a sandwich')
    expect(idle.status).toBe('completed')
    expect(idle.result).toContain('no agent is configured')
    expect(idle.result).toContain('Make me a sandwich')
  })

  test('waits by the clock of the instance', async () => {
    await using frozen = await testBerth({ flags: { isolation: 'none', freeze: '2030-01-01T00:00:00Z' } })
    const where = await frozen.server()
    const timers = async () => (await frozen.control('GET', '/clock')).body.timers
    const before = await timers()
    const { body } = await frozen.call('POST', `/servers/${where}/tasks`, {
      goal: 'wait: 10m\nwait: 20m\ncomplete: late',
    })
    const path = `/servers/${where}/tasks/${body.task_id}`
    const ended = settled(body.task_id, frozen, where)
    await until('the agent waits', async () => (await timers()) > before)
    await frozen.control('POST', '/clock', { advance: '29m' })
    expect((await frozen.call('GET', path)).body.task.status).toBe('running')
    await frozen.control('POST', '/clock', { advance: '1m' })
    expect(await ended).toMatchObject({ status: 'completed', result: 'late' })
  })

  test('is the same to the byte on two instances with one seed and a frozen clock', async () => {
    const transcripts: string[] = []
    for (const _ of [1, 2]) {
      await using one = await testBerth({
        flags: { isolation: 'none', 'rng-seed': 7, freeze: '2030-01-01T00:00:00Z', fixtures: [first] },
      })
      const where = await one.server()
      const goal = 'run: for i in 1 2 3; do echo $i; echo e$i >&2; done\nwrite: a <<< b\ncomplete: ok'
      const ended = await task(goal, one, where)
      const { body } = await one.call('GET', `/servers/${where}/tasks/${ended.id}/events`)
      transcripts.push(JSON.stringify([ended, body]))
    }
    expect(transcripts[0]).toBe(transcripts[1] as string)
    expect(transcripts[0]).toContain('1\\n2\\n3\\n')
  })
})

test('a file with a mistake stops the start', async () => {
  const wrong = join(folder, 'wrong.yaml')
  writeFileSync(wrong, 'scenarios:\n  - match: a\n    steps: [{ waits: 1s }]\n')
  const starting = testBerth({ flags: { isolation: 'none', fixtures: [first, wrong] } })
  const error = await starting.then(
    (started) => started[Symbol.asyncDispose](),
    (error) => error,
  )
  expect(error?.message).toContain(`The file ${wrong}, line 3, column 15: "scenarios[0].steps[0].waits"`)
})

describe('/_berth/scenarios/preview', () => {
  const preview = async (goal: string, scenarios?: unknown[]) =>
    berth.control('POST', '/scenarios/preview', { goal, ...(scenarios && { scenarios }) })

  test('says which scenario would take a goal, with its values and steps, and does nothing', async () => {
    await put(
      { match: 'another', steps: [{ complete: 'no' }] },
      {
        name: 'deploy',
        match: { regex: '^deploy (?P<app>.+)$' },
        steps: [
          { run: 'touch {{app}}' },
          { ask: 'Really {{app}}?' },
          { write: { path: '{{app}}.txt', content: '{{answer}}' } },
          { wait: '1m' },
          { complete: '{{app}}: {{answer}}' },
        ],
      },
    )
    const tasks = (await berth.call('GET', '/tasks')).body.tasks.length
    expect((await preview("deploy it's")).body).toEqual({
      by: 'scenario',
      scenario: { index: 1, name: 'deploy', source: 'control' },
      values: { app: "it's" },
      steps: [
        { kind: 'run', text: `VALUE_app='it'\\''s'\ntouch "\${VALUE_app}"` },
        { kind: 'ask', text: "Really it's?", as: 'answer' },
        { kind: 'write', path: "it's.txt", text: '{{answer}}' },
        { kind: 'wait', text: '60 s' },
        { kind: 'complete', text: "it's: {{answer}}" },
      ],
      problem: null,
    })
    expect((await berth.call('GET', '/tasks')).body.tasks).toHaveLength(tasks)
  })

  test('finds those of files, the directives of a goal, what is wrong with these, and nothing', async () => {
    expect((await preview('hello')).body).toMatchObject({
      by: 'scenario',
      scenario: { index: 0, source: first },
    })
    expect((await preview('Do\nrun: ls')).body).toMatchObject({
      by: 'directives',
      scenario: null,
      steps: [{ kind: 'run', text: 'ls' }],
    })
    expect((await preview('wait: soon')).body.problem).toContain('Line 1 of the goal')
    expect((await preview('make it nice')).body).toMatchObject({ by: 'nothing', steps: [], problem: null })
  })

  test('tries given scenarios in place of those that were set, and names the place of a mistake', async () => {
    await put({ match: 'mine', steps: [{ complete: 'old' }] })
    const given = [{ match: 'mine', steps: [{ complete: 'new' }] }]
    expect((await preview('mine', given)).body.steps).toEqual([{ kind: 'complete', text: 'new' }])
    expect((await all())[0].steps).toEqual([{ complete: 'old' }])
    const { status, body } = await preview('mine', [{ match: 'mine', steps: [{ run: '{{nope}}' }] }])
    expect([status, body.message]).toEqual([400, expect.stringContaining('scenarios[0].steps[0].run')])
  })
})

describe('GET /_berth/tasks/{id}/scenario', () => {
  test('repeats what a task did: the same files, commands, exit codes, question and result', async () => {
    await put({
      match: 'once',
      steps: [
        { say: 'I begin with {{goal}}.' },
        { write: { path: 'kept.txt', content: 'a \\{{b}} c' } },
        { run: { command: 'cat kept.txt; exit 3', expect: 3 } },
        { run: 'pwd > where.txt' },
        { read: 'kept.txt' },
        { ask: 'Which {{goal}}?' },
        { run: 'echo {{answer}} > answer.txt' },
        { complete: 'All of {{answer}} is done.' },
      ],
    })
    const { body: created } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'once' })
    const path = `/servers/${server}/tasks/${created.task_id}`
    await until(
      'it asks',
      async () => (await berth.call('GET', path)).body.task.status === 'awaiting_input',
      60_000,
    )
    await berth.call('POST', `${path}/input`, { answer: 'blue' })
    expect((await settled(created.task_id)).status).toBe('completed')

    const { body } = await berth.control('GET', `/tasks/${created.task_id}/scenario`)
    expect(body.scenario).toEqual({
      name: 'once',
      match: 'once',
      steps: [
        { say: 'I begin with once.' },
        { write: { path: 'kept.txt', content: 'a {{b}} c', verbatim: true } },
        { run: { command: 'cat kept.txt; exit 3', expect: 3 } },
        { run: 'pwd > where.txt' },
        { read: 'kept.txt' },
        { ask: 'Which once?' },
        { run: `VALUE_answer='blue'\necho "\${VALUE_answer}" > answer.txt` },
        { complete: 'All of blue is done.' },
      ],
    })
    expect(body.notes).toEqual([expect.stringContaining('{{answer}}')])
    await put(body.scenario)
    const { body: again } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'once' })
    const second = `/servers/${server}/tasks/${again.task_id}`
    await until(
      'it asks',
      async () => (await berth.call('GET', second)).body.task.status === 'awaiting_input',
      60_000,
    )
    await berth.call('POST', `${second}/input`, { answer: 'red' })
    expect(await settled(again.task_id)).toMatchObject({
      status: 'completed',
      result: 'All of blue is done.',
    })
    const recorded = (await berth.control('GET', `/tasks/${again.task_id}/scenario`)).body
    expect(recorded.scenario).toEqual(body.scenario)
  })

  test('of a failed and of a running task it says what it cannot repeat; of none it is 404', async () => {
    const failed = await task('run: exit 9')
    expect((await berth.control('GET', `/tasks/${failed.id}/scenario`)).body.scenario.steps).toEqual([
      { run: { command: 'exit 9', expect: 9 } },
      { fail: expect.stringContaining('exit code 9') },
    ])
    await put({ match: 'stays', steps: [{ hold: true }] })
    const { body: held } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'stays' })
    const { body } = await berth.control('GET', `/tasks/${held.task_id}/scenario`)
    expect(body).toMatchObject({
      scenario: { steps: [{ hold: true }] },
      notes: [expect.stringContaining('not over')],
    })
    await berth.call('POST', `/servers/${server}/tasks/${held.task_id}/cancel`)
    expect((await berth.control('GET', '/tasks/task_none/scenario')).status).toBe(404)
  })
})
