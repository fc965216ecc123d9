import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TestBerth } from '../support/berth.ts'
import { resultsIn, saidIn, systemIn, toolsIn } from '../support/model-servers/bodies.ts'
import { call, finish } from '../support/model-servers/reply.ts'
import { type ModelServer, modelServer, PROTOCOLS } from '../support/model-servers/server.ts'
import { berthWith, giveGoal } from '../support/model-servers/tasks.ts'

const KEY = 'secret-key-of-the-model'

describe.each(PROTOCOLS)('a task of the agent %s', (protocol) => {
  let model: ModelServer
  let berth: TestBerth
  let server: string

  beforeAll(async () => {
    model = modelServer(protocol, [], { key: KEY })
    berth = await berthWith(model)
    server = await berth.server()
  })

  afterAll(async () => {
    await berth[Symbol.asyncDispose]()
    model[Symbol.dispose]()
  })

  /** Gives a goal, the answers to which are laid down. */
  async function give(goal: string, answers: Parameters<ModelServer['lay']>[0]) {
    model.lay(answers)
    return giveGoal(berth, server, goal)
  }

  test('is done with the tools that the model calls, and ends with its result', async () => {
    const task = await give('Count the lines', [
      {
        text: 'I look around.',
        calls: [{ tool: 'write', input: { path: 'notes/a.txt', content: 'one\ntwo\n' } }],
      },
      call('run', { command: 'wc -l < notes/a.txt; echo oops >&2; exit 3' }),
      call('read', { path: 'notes/a.txt', first_line: 2 }),
      call('list', { folder: 'notes' }),
      call('search', { expression: 'tw.' }),
      finish('There are two lines.'),
    ])
    const { status, result } = await task.done
    expect({ status, result }).toEqual({ status: 'completed', result: 'There are two lines.' })
    expect(task.of('message')).toMatchObject([{ text: 'I look around.' }])
    expect(task.of('toolCall').map(({ tool }) => tool)).toEqual(['write', 'run', 'read', 'list', 'search'])
    expect(task.of('usage').at(-1)).toMatchObject({ inputTokens: 600, outputTokens: 120 })
    expect(resultsIn(protocol, model.requests.at(-1))).toEqual([
      'written',
      'exit code 3\nstdout:\n2\n\nstderr:\noops\n',
      'two\n(lines 2 to 2 of 2)',
      'notes/a.txt',
      'notes/a.txt:2: two',
    ])
    expect(JSON.stringify(task.events) + berth.log()).not.toContain(KEY)
  })

  test('describes the workspace to the model, and gives it the goal unchanged', async () => {
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { API_TOKEN: 'hush-hush-hush' } })
    const task = await give('Fix "it"', [call('run', { command: 'echo "$API_TOKEN"' }), finish('done')])
    await task.done
    const [first, second] = model.requests
    if (!first) throw new Error('no request')
    expect(toolsIn(protocol, first)).toEqual(['run', 'read', 'write', 'list', 'search', 'ask', 'finish'])
    expect(saidIn(protocol, first)).toMatchObject([{ role: 'user', text: 'Fix "it"' }])
    expect(systemIn(protocol, first)).toContain('API_TOKEN')
    expect(JSON.stringify([first.body, second?.body])).not.toContain('hush-hush')
    expect(resultsIn(protocol, second)).toEqual(['exit code 0\nstdout:\n***\n'])
  })

  test('shows what the model says while it says it', async () => {
    const watched = Promise.withResolvers<void>()
    const task = await give('Say it', [
      async () => {
        await watched.promise
        return { text: 'This comes in several pieces.', ...finish('done') }
      },
    ])
    watched.resolve()
    await task.done
    const shown = task.of('text').map(({ text }) => text)
    expect(shown.join('')).toBe('This comes in several pieces.')
    expect(shown.length).toBeGreaterThan(1)
  })

  test('asks the caller, waits, and gives the model the answer', async () => {
    const task = await give('Ask me', [call('ask', { question: 'Which colour?' }), finish('It is done.')])
    await task.event('question')
    const { body } = await berth.call('GET', `/servers/${server}/tasks/${task.id}`)
    expect(body.task).toMatchObject({ status: 'awaiting_input', question: 'Which colour?' })
    await berth.call('POST', `/servers/${server}/tasks/${task.id}/input`, { answer: 'Blue.' })
    expect(await task.done).toMatchObject({ status: 'completed' })
    expect(resultsIn(protocol, model.requests[1])).toEqual(['Blue.'])
  })

  test('uses tools that are called together one after the other, and gives all results back', async () => {
    const task = await give('Two at once', [
      {
        calls: [
          { tool: 'run', input: { command: 'echo first > order' } },
          { tool: 'run', input: { command: 'echo second >> order; cat order | tr "\\n" " "' } },
        ],
      },
      finish('done'),
    ])
    await task.done
    const said = saidIn(protocol, model.requests[1] as never)
    const asked = said.flatMap(({ calls }) => calls)
    expect(asked.length).toBe(2)
    expect(said.flatMap(({ results }) => results)).toEqual(asked)
    expect(said.map(({ text }) => text).join('\n')).toContain('first second')
  })

  test('does not end beside a call that failed', async () => {
    const both = [
      { tool: 'run', input: { command: 'exit 1' } },
      { tool: 'finish', input: { status: 'completed', result: 'All tests pass.' } },
    ]
    const task = await give('Finish early', [{ calls: both }, finish('They did not pass.', 'failed')])
    expect(await task.done).toMatchObject({ status: 'failed', result: 'They did not pass.' })
  })

  test('reports invalid calls to the model, and lets it try again', async () => {
    const task = await give('Call wrongly', [
      call('run', '{"command": "echo'),
      call('dance', {}),
      call('run', { folder: 'x' }),
      call('read', { path: '../../etc/passwd' }),
      call('finish', { status: 'great', result: 'x' }),
      finish('done'),
    ])
    expect(await task.done).toMatchObject({ status: 'completed', result: 'done' })
    const told = resultsIn(protocol, model.requests.at(-1))
    expect(told[0]).toContain('The arguments are no JSON')
    expect(told[1]).toContain('There is no tool "dance"; there are run, read, write')
    expect(told[2]).toContain('"command": Expected')
    expect(told[3]).toContain('leads out of the workspace')
    expect(told[4]).toContain('"status": Expected')
    expect(task.of('notice').length).toBe(4)
  })

  test('is given up where the model only makes calls that cannot be', async () => {
    const task = await give('Call wrongly without end', [call('dance', {})])
    const { status, result } = await task.done
    expect(status).toBe('failed')
    expect(result).toContain('5 times in a row nothing of what the model answered could be used')
    expect(result).toContain('There is no tool "dance"')
    expect(model.requests.length).toBe(5)
  })

  test('takes what a model says for the result that works but does not finish, after telling it once', async () => {
    const task = await give('Just talk', [
      call('run', { command: 'true' }),
      { text: 'It is all fine.' },
      { text: 'As I said.' },
    ])
    expect(await task.done).toMatchObject({ status: 'completed', result: 'It is all fine.\n\nAs I said.' })
    expect(saidIn(protocol, model.requests[2] as never).at(-1)?.text).toContain('call finish with the result')
  })

  test('fails where the model has done nothing but talk, or says nothing', async () => {
    const talk = await give('Just talk', [{ text: 'I would do it so.' }])
    const { status, result } = await talk.done
    expect(status).toBe('failed')
    expect(result).toContain('has called no tool, so that nothing was done')
    expect(result).toContain('I would do it so.')
    const silence = await give('Say nothing', [{}])
    expect(await silence.done).toMatchObject({ status: 'failed' })
    expect((await silence.done).result).toContain('answers with nothing')
  })

  test('fails where the model declines, with its words', async () => {
    const task = await give('Do harm', [{ text: 'I will not.', stop: 'refusal' }])
    expect(await task.done).toMatchObject({
      status: 'failed',
      result: 'The model declines to do this. The model said last: I will not.',
    })
  })

  test('reports to the model that its response was cut off', async () => {
    const task = await give('Write much', [
      { text: 'It is so lo', stop: 'length' },
      { calls: [{ tool: 'write', input: '{"path":"a.txt","content":"so lo' }], stop: 'length' },
      finish('done'),
    ])
    expect(await task.done).toMatchObject({ status: 'completed' })
    expect(saidIn(protocol, model.requests[1] as never).at(-1)?.text).toContain('was cut off')
    expect(resultsIn(protocol, model.requests[2])[0]).toContain('was cut off')
  })

  test('passes over what a model thinks, and gives back what the endpoint wants back', async () => {
    const task = await give('Think', [
      { thinks: 'Hmm, let me see.', ...call('run', { command: 'true' }) },
      finish('done'),
    ])
    await task.done
    expect(JSON.stringify(task.events)).not.toContain('Hmm')
    const back = JSON.stringify(model.requests[1]?.body.messages)
    expect(back.includes('"signature":"signed"')).toBe(protocol === 'anthropic')
    expect(back.includes('Hmm')).toBe(protocol === 'anthropic')
  })

  test('cuts what a tool gives in much, and says so', async () => {
    const task = await give('Print much', [
      call('run', { command: 'seq 100000' }),
      call('run', { command: 'seq 30000 > long.txt' }),
      call('read', { path: 'long.txt' }),
      finish('done'),
    ])
    await task.done
    const [run = '', , read = ''] = resultsIn(protocol, model.requests.at(-1))
    expect(run.length).toBeLessThan(25_000)
    expect(run).toContain('characters are left out here')
    expect(run).toContain('99999')
    expect(read.length).toBeLessThan(25_000)
    expect(read).toMatch(/\(lines 1 to \d+ of 30000\)$/)
  })

  test('can be cancelled while the model answers, and while a command runs', async () => {
    const never = Promise.withResolvers<Response>()
    const asking = await give('Wait', [() => never.promise])
    const { gone } = await model.came(1)
    await berth.call('POST', `/servers/${server}/tasks/${asking.id}/cancel`)
    await gone
    expect(await asking.done).toMatchObject({ status: 'cancelled' })

    const running = await give('Sleep', [call('run', { command: 'echo begun; sleep 300' })])
    await running.event('output')
    await berth.call('POST', `/servers/${server}/tasks/${running.id}/cancel`)
    expect(await running.done).toMatchObject({ status: 'cancelled' })
    expect(model.requests.length).toBe(1)
  })

  test('uses the first 100 tools that are called at once, and reports the others to the model', async () => {
    const many = Array.from({ length: 130 }, () => ({ tool: 'list', input: {} }))
    const task = await give('Call much', [{ calls: many }, finish('done')])
    expect(await task.done).toMatchObject({ status: 'completed' })
    expect(task.of('toolCall').length).toBe(100)
    expect(task.of('notice')).toMatchObject([{ text: expect.stringContaining('called 130 tools at once') }])
    const said = saidIn(protocol, model.requests[1] as never)
    expect(said.flatMap(({ calls }) => calls).length).toBe(100)
    expect(said.flatMap(({ results }) => results)).toEqual(said.flatMap(({ calls }) => calls))
    expect(JSON.stringify(said)).toContain('The last 30 calls of that answer were left out')
  })

  test('outlives arguments that are nested deeply', async () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    const task = await give('Go deep', [
      call('run', `{"command":"echo yes","more":${deep}}`),
      call('run', `{"command":${deep}}`),
      finish('done'),
    ])
    expect(await task.done).toMatchObject({ status: 'completed', result: 'done' })
    expect(resultsIn(protocol, model.requests.at(-1))[0]).toContain('yes')
  })

  test('shows the key nowhere, also where the endpoint gives it back in calls and results', async () => {
    const task = await give('Give it back', [
      { text: `It is ${KEY}`, ...call('run', { command: `echo ${KEY}` }) },
      call(KEY, {}),
      call('ask', { question: `Is it ${KEY}?` }),
      finish(`It is ${KEY}`),
    ])
    await task.event('question')
    await berth.call('POST', `/servers/${server}/tasks/${task.id}/input`, { answer: 'Yes.' })
    expect(await task.done).toMatchObject({ result: 'It is ***' })
    const { body } = await berth.call('GET', `/servers/${server}/tasks/${task.id}`)
    expect(JSON.stringify([task.events, body]) + berth.log()).not.toContain(KEY)
  })

  test('keeps results and questions in bounds', async () => {
    const long = 'x'.repeat(1_000_000)
    const task = await give('Say much', [call('ask', { question: long }), finish(long)])
    await task.event('question')
    const asked = await berth.call('GET', `/servers/${server}/tasks/${task.id}`)
    expect(asked.body.task.question.length).toBe(256 * 1024 + 1)
    await berth.call('POST', `/servers/${server}/tasks/${task.id}/input`, { answer: 'Yes.' })
    expect((await task.done).result.length).toBe(256 * 1024 + 1)
  })
})
