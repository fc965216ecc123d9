import { expect, test } from 'bun:test'
import { call, finish, type Reply } from '../support/model-servers/reply.ts'
import { modelServer } from '../support/model-servers/server.ts'
import { berthWith, giveGoal } from '../support/model-servers/tasks.ts'

/** A model that never finishes. */
const endless: Reply = { text: 'A bit more.', ...call('run', { command: 'true' }) }

test.each([
  [{ steps: 3 }, 'Given up: the model has answered 3 times ("steps").', 3],
  [{ tokens: 250 }, 'Given up: 360 of 250 tokens are used ("tokens").', 3],
  [{ cost: 0.001, input_price: 3, output_price: 15 }, 'Given up: $0.0012 of $0.001 are spent ("cost").', 2],
])(
  'a model that never finishes is ended by the budget %j, with a clear result',
  async (limits, told, requests) => {
    using model = modelServer('openai', [endless])
    await using berth = await berthWith(model, { 'agent-limits': JSON.stringify(limits) })
    const task = await giveGoal(berth, await berth.server(), 'Go on without end')
    const { status, result } = await task.done
    expect(status).toBe('failed')
    expect(result).toStartWith(told)
    expect(result).toContain('--agent-limits')
    expect(result).toEndWith('The model said last: A bit more.')
    expect(model.requests.length).toBe(requests)
    const { cost } = task.of('usage').at(-1)
    expect(cost).toBe('cost' in limits ? 0.0012 : undefined)
  },
)

test('time ends a request and a command, and runs with a frozen clock', async () => {
  const never = Promise.withResolvers<Response>()
  using model = modelServer('openai', [() => never.promise])
  const flags = { 'agent-limits': '{"time":"2s"}', freeze: '2030-01-01T00:00:00Z' }
  await using berth = await berthWith(model, flags)
  const server = await berth.server()
  const asking = await giveGoal(berth, server, 'Wait')
  const { gone } = await model.came(1)
  expect((await asking.done).result).toStartWith('Given up: it took longer than 2 s ("time").')
  await gone

  model.lay([call('run', { command: 'sleep 300' }), finish('done')])
  const running = await giveGoal(berth, server, 'Sleep')
  expect((await running.done).result).toStartWith('Given up: it took longer than 2 s ("time").')
  expect(running.of('toolResult')[0]?.output).toMatchObject({ timedOut: true })
  expect(model.requests.length).toBe(1)
})

test('the time for which the caller is waited for does not count', async () => {
  using model = modelServer('openai', [call('ask', { question: 'Well?' }), finish('done')])
  await using berth = await berthWith(model, { 'agent-limits': '{"time":"2s"}' })
  const server = await berth.server()
  const task = await giveGoal(berth, server, 'Ask me')
  const { event } = await task.event('question')
  expect(event).toBe('question')
  // Longer than the whole budget.
  await Bun.sleep(2_200)
  await berth.call('POST', `/servers/${server}/tasks/${task.id}/input`, { answer: 'Yes.' })
  expect(await task.done).toMatchObject({ status: 'completed' })
})

test('tokens below nothing give nothing back', async () => {
  const wrong = { ...endless, usage: { input: 100, output: -1_000_000 } }
  using model = modelServer('openai', [wrong])
  await using berth = await berthWith(model, { 'agent-limits': '{"tokens":250}' })
  const task = await giveGoal(berth, await berth.server(), 'Go on without end')
  expect((await task.done).result).toStartWith('Given up: 300 of 250 tokens are used')
  expect(task.of('usage').at(-1)).toMatchObject({ inputTokens: 300, outputTokens: 0 })
})

test('time ends an answer of many calls', async () => {
  const calls = Array.from({ length: 90 }, () => ({ tool: 'run', input: { command: 'sleep 0.2' } }))
  using model = modelServer('openai', [{ calls }])
  await using berth = await berthWith(model, { 'agent-limits': '{"time":"1s"}' })
  const task = await giveGoal(berth, await berth.server(), 'Call much')
  expect((await task.done).result).toStartWith('Given up: it took longer than 1 s ("time").')
  expect(task.of('toolCall').length).toBeLessThan(10)
})
