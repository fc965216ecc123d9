import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { AgentError } from '../../src/agents/agent.ts'
import { AgentServer } from '../support/agents.ts'
import { Scripts } from './scripted-script.ts'

let server: AgentServer
const scripts = new Scripts()
beforeAll(async () => {
  server = await AgentServer.open()
})
afterAll(async () => {
  scripts[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
})

/** Carries out steps to the end. */
const carriedOut = (goal: string, ...steps: unknown[]) => server.work(scripts.does(...steps), goal)

describe('steps', () => {
  test('are carried out in order, and all that they do is reported', async () => {
    const { outcome, events } = await carriedOut(
      'greet',
      { say: 'On it.' },
      { write: { path: 'notes/a.txt', content: 'hello\n' } },
      { run: 'cat notes/a.txt; echo oops >&2' },
      { read: 'notes/a.txt' },
      { complete: 'Greeted.' },
    )
    expect(outcome).toEqual({ status: 'completed', result: 'Greeted.' })
    expect(events).toEqual([
      { type: 'notice', text: 'Follows the scenario "script".' },
      { type: 'message', text: 'On it.' },
      {
        type: 'toolCall',
        call: 'call_1',
        tool: 'write',
        input: { path: 'notes/a.txt', content: 'hello\n' },
      },
      { type: 'toolResult', call: 'call_1', tool: 'write', ok: true, output: { bytes: 6 } },
      {
        type: 'toolCall',
        call: 'call_2',
        tool: 'run',
        input: { command: 'cat notes/a.txt; echo oops >&2' },
      },
      {
        type: 'toolResult',
        call: 'call_2',
        tool: 'run',
        ok: true,
        output: { stdout: 'hello\n', stderr: 'oops\n', exitCode: 0, timedOut: false, truncated: false },
      },
      { type: 'toolCall', call: 'call_3', tool: 'read', input: { path: 'notes/a.txt' } },
      {
        type: 'toolResult',
        call: 'call_3',
        tool: 'read',
        ok: true,
        output: { content: 'hello\n', bytes: 6, truncated: false },
      },
    ])
  })

  test('without an end complete with what was done', async () => {
    const { outcome } = await carriedOut(
      'x',
      { run: { command: 'exit 3', expect: 3 } },
      { write: { path: 'a.txt', content: '' } },
      { run: 'true\ntrue' },
      { say: 'hi' },
    )
    expect(outcome).toEqual({
      status: 'completed',
      result: 'Done: ran exit 3 (exit code 3); wrote a.txt; ran true …; said "hi".',
    })
  })

  test('that fail on purpose give the reason', async () => {
    const { outcome } = await carriedOut('x', { fail: 'No luck with {{goal}}.' })
    expect(outcome).toEqual({ status: 'failed', result: 'No luck with x.' })
  })

  test.each([
    [{ write: { path: '../out.txt', content: 'x' } }, 'Writing ../out.txt failed: '],
    [{ read: 'none.txt' }, 'Reading none.txt failed: '],
    [{ run: 'a\0b' }, 'Running a\0b failed: A command cannot hold a NUL'],
  ])('that a tool refuses have the work fail with its reason: %j', async (step, beginning) => {
    const { outcome } = await carriedOut('x', step, { complete: 'never' })
    expect(outcome.status).toBe('failed')
    expect(outcome.result).toStartWith(beginning)
    expect(outcome.result.length).toBeGreaterThan(beginning.length + 5)
  })
})

describe('run', () => {
  test('that fails names the command, its exit code and the end of what it said', async () => {
    const command = 'seq 1 50 >&2; echo fine; exit 7'
    const { outcome } = await carriedOut('x', { run: command }, { write: { path: 'after.txt', content: '' } })
    const end = Array.from({ length: 20 }, (_, index) => index + 31).join('\n')
    expect(outcome).toEqual({
      status: 'failed',
      result: `The command ${command} ended with exit code 7:\n${end}`,
    })
    expect(await server.text('after.txt')).toBeNull()
  })

  test('shows the end of its output where it said nothing on stderr, and only the code where it was silent', async () => {
    const { outcome } = await carriedOut('x', { run: 'echo 2 tests failed; exit 1' })
    expect(outcome.result).toBe(
      'The command echo 2 tests failed; exit 1 ended with exit code 1:\n2 tests failed',
    )
    const silent = await carriedOut('x', { run: 'false' })
    expect(silent.outcome.result).toBe('The command false ended with exit code 1.')
  })

  test.each([
    ['exit 4', 4, 'completed'],
    ['exit 4', 'any', 'completed'],
    ['true', 4, 'failed'],
  ])('%s with %p expected is %s', async (command, wanted, status) => {
    const { outcome } = await carriedOut('x', { run: { command, expect: wanted } })
    expect(outcome.status).toBe(status as 'completed')
    if (status === 'failed') expect(outcome.result).toContain('exit code 0 instead of 4')
  })

  test('that takes too long fails, whatever is expected', async () => {
    const { outcome } = await carriedOut('x', {
      run: { command: 'sleep 60', timeout: '50ms', expect: 'any' },
    })
    expect(outcome).toEqual({
      status: 'failed',
      result: 'The command sleep 60 took too long and was ended.',
    })
  })

  test('takes place in a folder, with the variables of the server, which stay secret', async () => {
    await server.workspace.write('sub/x', new Uint8Array())
    const agent = scripts.does(
      { run: { command: 'basename "$PWD"; echo "$TOKEN"', cwd: 'sub', as: 'out' } },
      {
        complete: '{{out}}',
      },
    )
    const { outcome } = await server.work(agent, 'x', { variables: { TOKEN: 'hunter22' } })
    expect(outcome.result).toBe('sub\n***')
  })
})

describe('values', () => {
  test('come from the goal, from output, files and answers', async () => {
    await server.workspace.write('v.txt', new TextEncoder().encode('1.2.3'))
    const agent = scripts.agent({
      match: { regex: '(?i)^deploy (?<app>\\w+)(?: to (?<where>\\w+))?$' },
      steps: [
        { run: { command: 'printf "%s\\n\\n" "<{{app}}>"', as: 'out' } },
        { read: { path: 'v.txt', as: 'version' } },
        { ask: { question: 'Is {{version}} of {{app}} right?', as: 'sure' } },
        { ask: 'Really?' },
        { write: { path: '{{ app }}.txt', content: '{{out}} [{{where}}] {{sure}} {{answer}} {{goal}}' } },
      ],
    })
    const answers = ['yes', 'really']
    const questions: string[] = []
    const { outcome } = await server.work(agent, '  Deploy shop ', {
      ask: async (question) => {
        questions.push(question)
        return answers.shift() ?? ''
      },
    })
    expect(outcome.status).toBe('completed')
    expect(questions).toEqual(['Is 1.2.3 of shop right?', 'Really?'])
    expect(await server.text('shop.txt')).toBe('<shop> [] yes really   Deploy shop ')
  })

  const NASTY = `a'b"c $(touch pwned) \`touch pwned\`; touch pwned\n*  $HOME \\ end`

  test.each([
    ['bare', 'printf %s {{answer}} > out.txt'],
    ['in double quotes', 'printf %s "{{answer}}" > out.txt'],
    ['between quotes', `printf %s 'it'"'"''{{answer}} > out.txt`],
    ['in a substitution', 'printf %s "$(printf %s {{answer}})" > out.txt'],
    ['after one', 'printf %s "$(echo ")"){{answer}}" > out.txt'],
    ['after an escaped quote', 'printf %s \\"{{answer}} > out.txt'],
  ])('in a command are never run, whatever is in them: %s', async (_, command) => {
    const agent = scripts.does({ ask: 'What?' }, { run: command })
    const { outcome } = await server.work(agent, 'x', { ask: async () => NASTY })
    expect(outcome.status).toBe('completed')
    expect(await server.text('out.txt')).toContain(NASTY)
    expect(await server.text('pwned')).toBeNull()
  })

  test('cannot change what a command is run by', async () => {
    const agent = scripts.does({ ask: { question: 'What?', as: 'PATH' } }, { run: 'ls {{PATH}}' })
    const { outcome } = await server.work(agent, 'x', { ask: async () => '/' })
    expect(outcome.result).toBe('Done: asked "What?"; ran ls /.')
  })

  test('too long for a command have the work fail with a sentence', async () => {
    const agent = scripts.does({ ask: 'What?' }, { run: 'echo {{answer}}' })
    const { outcome } = await server.work(agent, 'x', { ask: async () => '€'.repeat(40_000) })
    expect(outcome.status).toBe('failed')
    expect(outcome.result).toContain('The values of answer are too long for a command')
  })

  test('are left out where the braces are meant', async () => {
    const { outcome } = await carriedOut(
      'x',
      { write: { path: 'page.vue', content: '<p>{{ goal }} {{ message }}</p>', verbatim: true } },
      { complete: '\\{{goal}} {{goal}}' },
    )
    expect(outcome.result).toBe('{{goal}} x')
    expect(await server.text('page.vue')).toBe('<p>{{ goal }} {{ message }}</p>')
  })
})

describe('what takes time', () => {
  test('waits by the clock: nothing goes on before it was moved so far, and one move may pass several waits', async () => {
    const agent = scripts.does({ wait: '2s' }, { wait: 3 }, { say: 'now' }, { wait: '1h' })
    const work = server.begin(agent, 'x')
    // The agent has set its first timer when it is seen to wait.
    while (scripts.clock.pending === 0) await Bun.sleep(0)
    await scripts.clock.advance(4_999)
    expect(work.events.map(({ type }) => type)).toEqual(['notice'])
    await scripts.clock.advance(1)
    expect(work.events.map(({ type }) => type)).toEqual(['notice', 'message'])
    await scripts.clock.advance(3_600_000)
    expect(await work.done).toEqual({
      status: 'completed',
      result: 'Done: waited 2 s; waited 3 s; said "now"; waited 3600 s.',
    })
  })

  test('is held until it is released', async () => {
    const work = server.begin(scripts.does({ hold: true }, { complete: 'free' }), 'x')
    await work.held.promise
    work.release()
    expect(await work.done).toEqual({ status: 'completed', result: 'free' })
  })

  test.each([{ wait: '1h' }, { hold: true }, { ask: 'What?' }, { run: 'sleep 600' }])(
    'ends at once when it is called off: %j',
    async (step) => {
      const work = server.begin(scripts.does({ say: 'here' }, step, { say: 'there' }), 'x')
      while (work.events.length < 2) await Bun.sleep(0)
      const reason = new Error('called off')
      work.abort(reason)
      expect(await work.done.catch((error) => error)).toBe(reason)
      expect(work.events.filter(({ type }) => type === 'message')).toHaveLength(1)
      expect(scripts.clock.pending).toBe(0)
    },
  )

  test.each([
    [{ ask: 'Which colour?' }, 'nobody to ask "Which colour?"'],
    [{ hold: true }, 'nobody who releases'],
  ])('says so where there is nobody for it: %j', async (step, sentence) => {
    const work = server.begin(scripts.does(step), 'x', { ask: null, hold: null })
    const error = await work.done.catch((error) => error)
    expect(error).toBeInstanceOf(AgentError)
    expect(error.message).toContain(sentence)
  })
})

test('the same work reports the same events to the byte', async () => {
  const agent = scripts.does(
    { run: { command: 'for i in 1 2 3; do echo $i; echo e$i >&2; done; exit 2', expect: 'any' } },
    { write: { path: 'd.txt', content: 'd' } },
  )
  const reports: string[] = []
  for (const _ of [1, 2]) {
    await using other = await AgentServer.open()
    const { events, outcome } = await other.work(agent, 'again')
    reports.push(JSON.stringify({ events, outcome }))
  }
  expect(reports[0]).toBe(reports[1] as string)
})
