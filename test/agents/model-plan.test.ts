import { describe, expect, test } from 'bun:test'
import { saidIn, toolsIn } from '../support/model-servers/bodies.ts'
import { makePlan, PLAN, planned } from '../support/model-servers/plans.ts'
import { call, type ModelRequest } from '../support/model-servers/reply.ts'
import { modelServer, PROTOCOLS } from '../support/model-servers/server.ts'

describe.each(PROTOCOLS)('a plan of the agent %s', (protocol) => {
  test('comes of one request that holds the goal and every template', async () => {
    using model = modelServer(protocol, [{ text: 'Easy.', ...planned }])
    const { plan, events } = makePlan(model.flags)
    expect(await plan).toEqual(PLAN)
    expect(model.requests.length).toBe(1)
    const request = model.requests[0] as ModelRequest
    const [asked] = saidIn(protocol, request)
    expect(asked?.text).toContain('An API for birds')
    expect(asked?.text).toContain('static-site (Site): Pages')
    expect(toolsIn(protocol, request)).toEqual(['plan'])
    expect(events).toEqual([
      { type: 'message', text: 'Easy.' },
      { type: 'usage', inputTokens: 100, outputTokens: 20 },
    ])
  })

  test('may be in a text, as from models that call no tools', async () => {
    using model = modelServer(protocol, [
      { text: `Here it is:\n\`\`\`json\n${JSON.stringify(PLAN)}\n\`\`\`` },
    ])
    expect(await makePlan(model.flags).plan).toEqual(PLAN)
  })

  test('that cannot be used is asked for once more, with what is wrong', async () => {
    using model = modelServer(protocol, [call('plan', { ...PLAN, template: 'rails' }), planned])
    expect(await makePlan(model.flags).plan).toEqual(PLAN)
    const told = saidIn(protocol, model.requests[1] as ModelRequest).at(-1)
    expect(told?.text).toContain('There is no template "rails"; there are bun-api, static-site.')
  })

  test('that cannot be used again is given up', async () => {
    using model = modelServer(protocol, [{ text: 'I would take the second.' }, call('plan', '{"template":')])
    const { plan } = makePlan(model.flags)
    expect(await messageOf(plan)).toContain(
      'The model made no plan that can be used, tried 2 times: The arguments are no JSON',
    )
    expect(model.requests.length).toBe(2)
  })

  test('is not made where the model declines', async () => {
    using model = modelServer(protocol, [{ text: 'No.', stop: 'refusal' }])
    expect(await messageOf(makePlan(model.flags).plan)).toContain(
      'The model declines to plan this. The model said last: No.',
    )
  })
})

/** The message of what a promise fails of. */
const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'it did not fail',
    (error) => error.message,
  )
