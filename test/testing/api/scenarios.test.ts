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
  test('lists those of files in their order, with where they stand', async () => {
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

  const good = { match: 'a', steps: [{ say: 'b' }] }

  test.each([
    [{}, '"scenarios" in the body is missing'],
    [{ scenarios: {} }, '"scenarios" in the body: expected an array of at most 1000 entries, got {}.'],
    [{ scenarios: [], more: 1 }, '"more" in the body is not a known field'],
    [
      { scenarios: [good, { match: 'x', steps: [{ run: 5 }] }] },
      '"scenarios[1].steps[0].run" in the body: expected a string that is not blank or an object with command, got 5.',
    ],
    [
      { scenarios: [good, { ...good, source: 'control' }] },
      '"scenarios[1].source" in the body is not a known field',
    ],
    [{ scenarios: [{ match: { regex: '(' }, steps: good.steps }] }, '"scenarios[0].match.regex" in the body'],
  ])('refuses %j by its place and changes nothing', async (body, sentence) => {
    await put(good)
    const answer = await berth.control('PUT', '/scenarios', body)
    expect([answer.status, answer.body.error]).toEqual([400, 'bad_request'])
    expect(answer.body.message).toContain(sentence)
    expect(await all()).toEqual([{ ...good, source: 'control' }, ...FROM_FILES])
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
  expect(error?.message).toContain(
    `The fixtures file ${wrong}, line 3, column 15: "scenarios[0].steps[0].waits"`,
  )
})
