import { describe, expect, test } from 'bun:test'
import { AgentError } from '../../src/agents/agent.ts'
import { makeAuthority } from '../support/authority.ts'
import { anthropicAnswer } from '../support/model-servers/anthropic.ts'
import { openaiAnswer } from '../support/model-servers/openai.ts'
import { makePlan, PLAN, planned } from '../support/model-servers/plans.ts'
import { eventStream, type ModelRequest, type Reply } from '../support/model-servers/reply.ts'
import { cutOff, modelServer, PROTOCOLS, type Protocol, refusal } from '../support/model-servers/server.ts'
import { freePort } from '../support/ports.ts'

const KEY = 'sk-a-key-that-must-not-be-seen'

describe.each(PROTOCOLS)('the endpoint of the agent %s', (protocol) => {
  test('is asked again where it is busy, when it says, by berth’s clock', async () => {
    using model = modelServer(protocol, [
      refusal(429, 'Slow down.', { 'retry-after': '7' }),
      refusal(503, 'Later.'),
      planned,
    ])
    const { plan, notice, clock, events } = makePlan(model.flags)
    expect(await notice(1)).toContain('answered 429: Slow down. It is asked again in 7 s (1 of 6).')
    await clock.advance(6_999)
    expect(model.requests.length).toBe(1)
    await clock.advance(1)
    expect(await notice(2)).toContain('answered 503: Later. It is asked again in 2 s (2 of 6).')
    await clock.advance(2_000)
    expect(await plan).toEqual(PLAN)
    expect(events.filter(({ type }) => type === 'notice').length).toBe(2)
  })

  test('is given up where it stays busy, and at once where it asks for too long a wait', async () => {
    using model = modelServer(protocol, [refusal(529, 'Overloaded.')])
    const { plan, notice, clock } = makePlan(model.flags)
    for (let again = 1; again <= 6; again += 1) {
      await notice(again)
      await clock.advance(1_000 * 2 ** (again - 1))
    }
    expect(await failure(plan)).toEndWith('answered 529: Overloaded. It was asked 7 times.')

    model.lay([refusal(429, 'Enough.', { 'retry-after': '3600' })])
    expect(await failure(makePlan(model.flags).plan)).toContain('It asks to wait for 3600 s')
    expect(model.requests.length).toBe(1)
  })

  test('that names the date of a wait is waited for by its own calendar', async () => {
    const dates = { date: 'Mon, 01 Jan 2024 00:00:00 GMT', 'retry-after': 'Mon, 01 Jan 2024 00:00:30 GMT' }
    using model = modelServer(protocol, [refusal(429, 'Wait.', dates), planned])
    const { plan, notice, clock } = makePlan(model.flags)
    expect(await notice(1)).toContain('again in 30 s')
    await clock.advance(30_000)
    expect(await plan).toEqual(PLAN)
  })

  test('that has no credit left is not asked again', async () => {
    using model = modelServer(protocol, [
      Response.json(
        { error: { message: 'You exceeded your current quota.', code: 'insufficient_quota' } },
        { status: 429 },
      ),
    ])
    expect(await failure(makePlan(model.flags).plan)).toContain('has no credit left for this key (429)')
  })

  test('that refuses the key is reported with the setting and without the key', async () => {
    using model = modelServer(protocol, [planned], { key: KEY })
    const wrong = await failure(makePlan({ ...model.flags, [`${protocol}-api-key`]: `${KEY}-wrong` }).plan)
    expect(wrong).toContain('refused the key (401)')
    expect(wrong).toContain(`BERTH_${protocol.toUpperCase()}_API_KEY (--${protocol}-api-key)`)
    expect(wrong).not.toContain(KEY)
    const { [`${protocol}-api-key`]: _, ...keyless } = model.flags
    expect(await failure(makePlan(keyless).plan)).toContain('wants a key (401)')
  })

  test('that repeats the key in what it says does not bring it into a result', async () => {
    using model = modelServer(protocol, [refusal(403, `The key ${KEY} may not.`)], { key: KEY })
    const told = await failure(makePlan(model.flags).plan)
    expect(told).toContain('The key *** may not')
  })

  test('is sent no key where none is set', async () => {
    using model = modelServer(protocol, [planned])
    expect(await makePlan(model.flags).plan).toEqual(PLAN)
    const { headers } = model.requests[0] as ModelRequest
    expect([headers.has('authorization'), headers.has('x-api-key')]).toEqual([false, false])
    expect(headers.get('user-agent')).toStartWith('berth')
  })

  test('whose proxy gave up is asked again, though its words sound of a request that is too long', async () => {
    using model = modelServer(protocol, [refusal(500, 'context canceled'), planned])
    const { plan, notice, clock } = makePlan(model.flags)
    expect(await notice(1)).toContain('answered 500: context canceled. It is asked again')
    await clock.advance(1_000)
    expect(await plan).toEqual(PLAN)
  })

  test('that does not know the model is reported with both settings', async () => {
    using model = modelServer(protocol, [refusal(404, 'model "test-model" not found')])
    const told = await failure(makePlan(model.flags).plan)
    expect(told).toContain('has no model "test-model"')
    expect(told).toContain(`(--${protocol}-model)`)
    expect(told).toContain(`(--${protocol}-base-url)`)
  })

  test('that redirects is not followed: the key goes nowhere else', async () => {
    using other = modelServer(protocol, [planned])
    const target = `http://127.0.0.1:${other.port}/v1/elsewhere`
    using model = modelServer(
      protocol,
      [new Response(null, { status: 307, headers: { location: `${target}?token=1` } })],
      { key: KEY },
    )
    const told = await failure(makePlan(model.flags).plan)
    expect(told).toContain(`redirects to ${target} (307)`)
    expect(told).not.toContain('token=1')
    expect(other.requests.length).toBe(0)
  })

  test('whose certificate nobody vouches for is not trusted, and the result says so', async () => {
    const tls = makeAuthority().issue('IP:127.0.0.1')
    using model = modelServer(protocol, [planned], { tls })
    const told = await failure(makePlan(model.flags).plan)
    expect(told).toContain('has a certificate that cannot be trusted')
    expect(told).toContain('NODE_EXTRA_CA_CERTS')
    expect(model.requests.length).toBe(0)
  })

  test('that is down is tried again, and given up with what to do', async () => {
    const model = modelServer(protocol, [planned], { port: freePort() })
    model[Symbol.dispose]()
    const { plan, notice, clock } = makePlan(model.flags)
    for (let again = 1; again <= 3; again += 1) {
      expect(await notice(again)).toContain(`again in ${2 ** (again - 1)} s (${again} of 3)`)
      await clock.advance(1_000 * 2 ** (again - 1))
    }
    const told = await failure(plan)
    expect(told).toContain('cannot be reached (ECONNREFUSED). Start the model server, or correct')
    expect(told).toContain('It was asked 4 times.')
  })

  test('that comes back is used', async () => {
    const gone = modelServer(protocol, [planned], { port: freePort() })
    gone[Symbol.dispose]()
    const { plan, notice, clock } = makePlan(gone.flags)
    await notice(1)
    using back = modelServer(protocol, [planned], { port: gone.port })
    await clock.advance(1_000)
    expect(await plan).toEqual(PLAN)
    expect(back.requests.length).toBe(1)
  })

  test('that is silent is abandoned and reported', async () => {
    const never = Promise.withResolvers<Response>()
    using model = modelServer(protocol, [() => never.promise, () => beginning(protocol), planned])
    const { plan, notice, clock } = makePlan(model.flags, { silenceMs: 300 })
    expect(await notice(1)).toContain('has sent nothing for 0.3 s. It is asked again in 1 s (1 of 3).')
    await (await model.came(1)).gone
    await clock.advance(1_000)
    // The second begins to answer, and falls silent.
    expect(await notice(2)).toContain('has sent nothing for 0.3 s')
    await (await model.came(2)).gone
    await clock.advance(2_000)
    expect(await plan).toEqual(PLAN)
  })

  test('is asked again where its answer is cut in the middle or holds garbage, and given up in the end', async () => {
    const garbage = eventStream(['data: {"id":\n\n', 'data: nothing of the kind\n\n'])
    const html = eventStream(['data: {"unknown":"shape"}\n\n'])
    using model = modelServer(protocol, [
      async () => cutOff(answer(protocol, planned)),
      garbage,
      html,
      planned,
    ])
    const { plan, notice, clock } = makePlan(model.flags)
    for (let again = 1; again <= 3; again += 1) {
      expect(await notice(again)).toContain('did not respond completely: ')
      await clock.advance(1_000 * 2 ** (again - 1))
    }
    expect(await plan).toEqual(PLAN)

    model.lay([garbage])
    const hopeless = makePlan(model.flags)
    for (let again = 1; again <= 3; again += 1) {
      await hopeless.notice(again)
      await hopeless.clock.advance(1_000 * 2 ** (again - 1))
    }
    expect(await failure(hopeless.plan)).toContain('It was asked 4 times.')
  })

  test('that sends an error in its stream is asked again', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    using model = modelServer(protocol, [
      eventStream([`event: error\ndata: ${JSON.stringify(error)}\n\n`]),
      planned,
    ])
    const { plan, notice, clock } = makePlan(model.flags)
    expect(await notice(1)).toContain('did not respond completely: Overloaded.')
    await clock.advance(1_000)
    expect(await plan).toEqual(PLAN)
  })

  test('that does not stream is asked for whole answers, whether it says so or answers so', async () => {
    using model = modelServer(protocol, [refusal(400, 'Streaming is not supported.'), planned])
    const { plan, notice } = makePlan(model.flags)
    expect(await notice(1)).toContain('It is asked for whole answers.')
    expect(await plan).toEqual(PLAN)
    expect(model.requests.map(({ body }) => body.stream ?? false)).toEqual([true, false])

    model.lay([() => answer(protocol, planned, false)])
    expect(await makePlan(model.flags).plan).toEqual(PLAN)
    expect(model.requests.length).toBe(1)
  })

  test('that responds with an error event is reported with its words', async () => {
    using model = modelServer(protocol, [Response.json({ error: 'Unexpected endpoint or method.' }), planned])
    const { plan, notice, clock } = makePlan(model.flags)
    expect(await notice(1)).toContain('did not respond completely: Unexpected endpoint or method.')
    await clock.advance(1_000)
    expect(await plan).toEqual(PLAN)
  })

  test('that responds with a web page is reported', async () => {
    using model = modelServer(protocol, [
      new Response('<html>Hello</html>', { headers: { 'content-type': 'text/html' } }),
    ])
    expect(await failure(makePlan(model.flags).plan)).toContain(
      `answers with a web page. Correct BERTH_${protocol.toUpperCase()}_BASE_URL`,
    )
  })

  test('that does not stop talking is let go', async () => {
    using model = modelServer(protocol, [() => endless(protocol)])
    expect(await failure(makePlan(model.flags).plan)).toContain('sends a response without end')
    await (await model.came(1)).gone
    expect(model.requests.length).toBe(1)
  })

  test('that reports no tokens has them estimated', async () => {
    using model = modelServer(protocol, [{ ...planned, usage: null }])
    const { plan, events } = makePlan(model.flags)
    await plan
    expect(events.map(({ type }) => type)).toEqual(['notice', 'usage'])
    const usage = events.find((event) => event.type === 'usage')
    expect(usage?.inputTokens).toBeGreaterThan(100)
    expect(usage?.outputTokens).toBeGreaterThan(5)
  })

  test('is let go at once when the work is called off, in a request and between two', async () => {
    const never = Promise.withResolvers<Response>()
    using model = modelServer(protocol, [() => never.promise])
    const first = makePlan(model.flags)
    const { gone } = await model.came(1)
    first.abort(new Error('called off'))
    expect(await messageOf(first.plan)).toBe('called off')
    await gone

    model.lay([refusal(500, 'Broken.')])
    const second = makePlan(model.flags)
    await second.notice(1)
    second.abort(new Error('called off'))
    expect(await messageOf(second.plan)).toBe('called off')
  })

  test('cannot keep work waiting beyond its time, also with a frozen clock', async () => {
    using model = modelServer(protocol, [refusal(500, 'Broken.')])
    const { plan } = makePlan({ ...model.flags, 'agent-limits': '{"time":"1s"}' })
    expect(await failure(plan)).toContain('Given up: it took longer than 1 s ("time").')
  })

  test('on this machine is reached directly, whatever proxy the environment names', async () => {
    const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY']
    const before = names.map((name) => [name, process.env[name]] as const)
    using proxy = modelServer(protocol, [planned])
    using model = modelServer(protocol, [planned], { key: KEY })
    try {
      for (const name of names)
        process.env[name] = name.toLowerCase() === 'no_proxy' ? '' : `http://127.0.0.1:${proxy.port}`
      expect(await makePlan(model.flags).plan).toEqual(PLAN)
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
    expect([proxy.requests.length, model.requests.length]).toEqual([0, 1])
  })
})

/** The message of what a promise fails of. */
const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'it did not fail',
    (error) => error.message,
  )

/** The message of the AgentError that a promise fails of. */
async function failure(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => null,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(AgentError)
  return error.message
}

function answer(protocol: Protocol, reply: Reply, stream = true): Response {
  const body = { stream, stream_options: {} }
  return protocol === 'openai' ? openaiAnswer(reply, body) : anthropicAnswer(reply, body)
}

/** An answer that begins and does not go on. */
async function beginning(protocol: Protocol): Promise<Response> {
  const bytes = await answer(protocol, planned).bytes()
  const body = new ReadableStream({ start: (controller) => controller.enqueue(bytes.slice(0, 200)) })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

/** An answer that goes on and on. */
async function endless(protocol: Protocol): Promise<Response> {
  const whole = await answer(protocol, { text: 'word '.repeat(500_000) }).text()
  const events = whole.split(/(?<=\n\n)/)
  const said = events.findIndex((event) => event.includes('word word'))
  const encoder = new TextEncoder()
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(events.slice(0, said).join(''))),
    pull: (controller) => controller.enqueue(encoder.encode(events[said])),
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
