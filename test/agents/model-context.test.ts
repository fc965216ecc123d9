import { describe, expect, test } from 'bun:test'
import { type Said, saidIn } from '../support/model-servers/bodies.ts'
import { call, finish, type ModelRequest } from '../support/model-servers/reply.ts'
import { modelServer, PROTOCOLS, refusal } from '../support/model-servers/server.ts'
import { berthWith, giveGoal } from '../support/model-servers/tasks.ts'

/** What a model server with little room says. */
const TOO_LONG = 'This model has a maximum context length of 2000 tokens.'

describe.each(PROTOCOLS)('a long task of the agent %s', (protocol) => {
  test('is kept in bounds, each call with its result, the goal and what is newest as they were', async () => {
    const steps = 40
    const print = call('run', { command: 'seq 4500; echo the end' })
    using model = modelServer(protocol, [...Array<typeof print>(steps).fill(print), finish('done')])
    await using berth = await berthWith(model)
    const task = await giveGoal(berth, await berth.server(), 'Read a lot')
    expect(await task.done).toMatchObject({ status: 'completed' })
    const lengths = model.requests.map(({ body }) => JSON.stringify(body).length)
    // Without bounds the last would have 40 times 21,000.
    expect(Math.max(...lengths)).toBeLessThan(400_000)
    expect(task.of('notice').filter(({ text }) => text.includes('shortened')).length).toBeGreaterThan(0)
    for (const request of model.requests) expectPairs(saidIn(protocol, request))
    const last = saidIn(protocol, model.requests.at(-1) as ModelRequest)
    expect(last[0]?.text).toContain('Read a lot')
    expect(last.at(-1)?.text).toContain('the end')
    expect(last.find(({ results }) => results.length > 0)?.text).toContain('more characters were here')
  })

  test('is kept in the bounds that the options give, for servers that cut silently', async () => {
    const answers = [...Array(12).fill(call('run', { command: 'seq 700' })), finish('done')]
    using model = modelServer(protocol, answers)
    await using berth = await berthWith(model, { 'agent-limits': { context: 4_000 } })
    const task = await giveGoal(berth, await berth.server(), 'Read a lot')
    expect(await task.done).toMatchObject({ status: 'completed' })
    const said = model.requests.map((request) =>
      saidIn(protocol, request).reduce((sum, { text }) => sum + text.length, 0),
    )
    expect(Math.max(...said)).toBeLessThan(16_000)
    expect(saidIn(protocol, model.requests.at(-1) as ModelRequest)[0]?.text).toContain('Read a lot')
  })

  test('goes on with a model that has less room, and forgets what is oldest', async () => {
    const room = 12_000
    const answers = Array.from({ length: 30 }, (_, step) =>
      step < 29 ? call('run', { command: `seq 300; echo step ${step}` }) : finish('done'),
    )
    let step = 0
    using model = modelServer(protocol, [
      ({ body }) => {
        if (JSON.stringify(body.messages).length > room) return refusal(400, TOO_LONG)
        step += 1
        return answers[step - 1] ?? finish('too far')
      },
    ])
    await using berth = await berthWith(model)
    const task = await giveGoal(berth, await berth.server(), 'Read a lot in little room')
    expect(await task.done).toMatchObject({ status: 'completed', result: 'done' })
    for (const request of model.requests) expectPairs(saidIn(protocol, request))
    const last = saidIn(protocol, model.requests.at(-1) as ModelRequest)
    expect(last[0]?.text).toContain('Read a lot in little room')
    expect(last.at(-1)?.text).toContain('step 28')
  })

  test('fails where not even the goal has room', async () => {
    using model = modelServer(protocol, [refusal(400, TOO_LONG)])
    await using berth = await berthWith(model)
    const task = await giveGoal(berth, await berth.server(), 'Too long')
    const { status, result } = await task.done
    expect(status).toBe('failed')
    expect(result).toContain(`takes no request as long as this (400): ${TOO_LONG}`)
    expect(model.requests.length).toBe(1)
  })
})

/** Every call has its result right after it, and no result is without its call. */
function expectPairs(said: Said[]): void {
  said.forEach(({ calls, results }, at) => {
    if (calls.length > 0) {
      const answered = said.slice(at + 1, at + 1 + calls.length).flatMap((next) => next.results)
      expect(answered.slice(0, calls.length)).toEqual(calls)
    }
    if (results.length > 0) {
      const before = said.slice(0, at).findLast((one) => one.calls.length > 0)
      expect(before?.calls).toEqual(expect.arrayContaining(results))
    }
  })
}
