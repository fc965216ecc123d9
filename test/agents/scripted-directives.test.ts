import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { AgentError } from '../../src/agents/agent.ts'
import { AgentServer } from '../support/agents.ts'
import { Scripts } from './scripted-script.ts'

let server: AgentServer
const scripts = new Scripts()

/** Characters that a goal may have, less what stands around. */
const MOST = 1_000_000

beforeAll(async () => {
  server = await AgentServer.open()
})
afterAll(async () => {
  scripts[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
})

const obeyed = (goal: string, answer = '') => server.work(scripts.agent(), goal, { ask: async () => answer })

describe('a goal without a scenario', () => {
  test('is obeyed line by line, and what is for people is passed over', async () => {
    const goal = [
      'Please write a file:',
      'write: notes/a b.txt <<< one: <<< two ',
      '  run: cat "notes/a b.txt" && echo done',
      'Thank you. Run: nothing',
      'Note: this is for people, https://example.com too',
      'complete: All done.',
      'run: touch after.txt',
      'bogus: line',
    ].join('\r\n')
    const { outcome, events } = await obeyed(goal)
    expect(outcome).toEqual({ status: 'completed', result: 'All done.' })
    expect(await server.text('notes/a b.txt')).toBe('one: <<< two ')
    expect(await server.text('after.txt')).toBeNull()
    expect(events.map((event) => ('tool' in event ? `${event.type} ${event.tool}` : event.type))).toEqual([
      'toolCall write',
      'toolResult write',
      'toolCall run',
      'toolResult run',
    ])
  })

  test('may ask, and use the answer', async () => {
    const { outcome } = await obeyed('ask: Which colour?\nrun: echo {{answer}} > colour.txt', '$(id) red')
    expect(outcome.result).toBe('Done: asked "Which colour?"; ran echo $(id) red > colour.txt.')
    expect(await server.text('colour.txt')).toBe('$(id) red\n')
  })

  test('names a command with the answer also where it fails, the beginning of a long one', async () => {
    const goal = 'ask: Which colour?\nrun: echo {{answer}}; exit 3'
    const { outcome } = await obeyed(goal, 'red')
    expect(outcome).toEqual({
      status: 'failed',
      result: 'The command echo red; exit 3 ended with exit code 3:\nred',
    })
    const { outcome: long } = await obeyed(
      'ask: Which colour?\nrun: echo {{answer}} > colour.txt',
      'r'.repeat(500),
    )
    expect(long.result).toBe(`Done: asked "Which colour?"; ran echo ${'r'.repeat(115)} ….`)
  })

  test('may fail', async () => {
    expect((await obeyed('fail: not today')).outcome).toEqual({ status: 'failed', result: 'not today' })
    expect((await obeyed('run: exit 9')).outcome).toMatchObject({ status: 'failed' })
  })

  test('waits by the clock', async () => {
    const work = server.begin(scripts.agent(), 'wait: 90s\ncomplete: later')
    while (scripts.clock.pending === 0) await Bun.sleep(0)
    await scripts.clock.advance(90_000)
    expect(await work.done).toEqual({ status: 'completed', result: 'later' })
  })

  test('keeps braces that name no value', async () => {
    const { outcome } = await obeyed('complete: {{ message }} and {{answer}}')
    expect(outcome.result).toBe('{{ message }} and {{answer}}')
  })

  test.each([
    ['run: touch early.txt\nwait: soon', 'Line 2 of the goal, "wait: soon": expected a duration'],
    ['run: touch early.txt\n\nwrite: a.txt', 'Line 3 of the goal, "write: a.txt": expected a path, "<<<"'],
    [
      'run: touch early.txt\nwrite: <<< x',
      'Line 2 of the goal, "write: <<< x": expected a string that is not',
    ],
    ['run: touch early.txt\nrun:', 'Line 2 of the goal, "run:": expected a string that is not blank'],
    ['run: touch early.txt\nask: ', 'Line 2 of the goal, "ask:": expected a string that is not blank'],
    ["run: touch early.txt\nask: x\nrun: echo '{{answer}}'", 'outside of single quotes'],
    [
      'run: touch early.txt\n\n  wriet: a.txt <<< x',
      'Line 3 of the goal, "wriet: a.txt <<< x": no directive is called "wriet:". Did you mean "write:"? There are run, write, ask, wait, complete, fail.',
    ],
    [
      'edit: nothing\nrun: touch early.txt',
      'Line 1 of the goal, "edit: nothing": no directive is called "edit:".',
    ],
  ])('that is not understood is refused before anything is done: %j', async (goal, sentence) => {
    const work = server.begin(scripts.agent(), goal)
    const error = await work.done.catch((error) => error)
    expect(error).toBeInstanceOf(AgentError)
    expect(error.message).toContain(sentence)
    expect(work.events).toEqual([])
    expect(await server.text('early.txt')).toBeNull()
  })

  test.each(['Build me a shop', 'running: late', 'prerun: x', 'run : x', 'edit: nothing\nbogus: line'])(
    'nor directives is repeated, with the word that no agent is configured: %s',
    async (goal) => {
      const { outcome, events } = await obeyed(goal)
      expect(outcome).toMatchObject({ status: 'completed', idle: true })
      expect(outcome.result).toContain('no agent is configured')
      expect(outcome.result).toContain(goal)
      expect(events).toEqual([])
    },
  )

  test.each([
    ['spaces', `write: a${' '.repeat(MOST)}b`, 'expected a path, "<<<"'],
    ['places', `ask: x\nrun: ${'{{answer}}'.repeat(MOST / 10)}`, 'too long for a command'],
  ])('takes time in proportion to its length, whatever it holds: %s', async (_, goal, sentence) => {
    const told = await obeyed(goal, 'x').then(
      ({ outcome }) => outcome.result,
      ({ message }: Error) => message,
    )
    expect(told).toContain(sentence)
  })

  test.each(['write: a.txt <<< ', 'complete: '])(
    'cannot fill the memory with an answer: %s',
    async (line) => {
      const goal = `ask: x\n${line}${'{{answer}}'.repeat(1_000)}`
      const failed = await obeyed(goal, 'x'.repeat(1_000_000)).catch((error) => error)
      expect(failed).toBeInstanceOf(AgentError)
      expect(failed.message).toContain('has 1000000000 characters with its values')
    },
  )
})
