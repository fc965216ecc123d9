import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { berthForTests } from '../support/berth.ts'
import { readEvents } from '../support/events.ts'
import { until } from '../support/processes.ts'
import { setScenarios, TaskCalls, type TaskEvent } from '../support/tasks.ts'

const berth = await berthForTests({ flags: { plan: { servers: 100 } } })
const tasks = new TaskCalls(berth, await berth.server())

/** A command that prints a line, waits for a file, and prints another. */
const inTwo = (file: string) =>
  `run: echo first; until [ -e ${file} ]; do sleep 0.02; done; echo second >&2; echo third`
const touch = (file: string) => berth.exec(tasks.serverId, `touch ${file}`)

describe('as JSON', () => {
  test('it tells what the agent did, in order', async () => {
    const { id, createdAt } = await tasks.run('write: a.txt <<< hello\nrun: cat a.txt; echo no >&2; exit 3')
    const events = await tasks.events(id)
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6])
    for (const { at } of events) expect(at >= createdAt).toBe(true)
    expect(events.map(({ seq: _, at: __, ...event }) => event)).toEqual([
      { type: 'status', status: 'running' },
      { type: 'toolCall', call: 'call_1', tool: 'write', input: { path: 'a.txt', content: 'hello' } },
      { type: 'toolResult', call: 'call_1', tool: 'write', ok: true, output: { bytes: 5 } },
      {
        type: 'toolCall',
        call: 'call_2',
        tool: 'run',
        input: { command: 'cat a.txt; echo no >&2; exit 3' },
      },
      {
        type: 'toolResult',
        call: 'call_2',
        tool: 'run',
        ok: false,
        output: { stdout: 'hello', stderr: 'no\n', exitCode: 3, timedOut: false, truncated: false },
      },
      { type: 'status', status: 'failed', result: (await tasks.get(id)).result },
    ])
  })

  test('after= leaves out what is known, and nothing but a whole number is taken', async () => {
    const { id } = await tasks.run('run: true')
    const all = await tasks.events(id)
    expect(await tasks.events(id, '?after=0')).toEqual(all)
    expect(await tasks.events(id, '?after=2')).toEqual(all.slice(2))
    expect(await tasks.events(id, '?after=99')).toEqual([])
    for (const wrong of ['x', '-1', '1.5', '']) {
      const { status, body } = await berth.call('GET', `${tasks.path}/${id}/events?after=${wrong}`)
      expect([status, body.error]).toEqual([400, 'bad_request'])
      expect(body.message).toContain('in the query')
    }
  })

  test('control characters are kept as they are', async () => {
    const { id } = await tasks.run(`run: printf '\\033[31mred\\a\\r\\n\\tx'`)
    const result = (await tasks.events(id)).find(({ type }) => type === 'toolResult')
    expect(result?.output.stdout).toBe('\u001b[31mred\u0007\r\n\tx')
  })
})

describe('as a stream', () => {
  test('of a task that is over it is the same as JSON, with seq as id, and ends', async () => {
    const { id } = await tasks.run('run: echo x')
    const response = await berth.fetch(`${tasks.path}/${id}/events`, {
      headers: { accept: 'text/event-stream' },
    })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const events = await tasks.events(id)
    const expected = events.map(
      (event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    )
    expect((await response.text()).replaceAll(': \n\n', '')).toBe(expected.join(''))
  })

  test('a client that was cut off goes on behind what it has seen, also where its URL says less', async () => {
    const { id } = await tasks.run('run: echo x')
    const seqs = async (query: string, lastEventId?: string) => {
      const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
      const followed = await tasks.follow(id, query, { headers })
      await followed.rest()
      return followed.seqs
    }
    expect(await seqs('')).toEqual([1, 2, 3, 4])
    expect(await seqs('?after=2')).toEqual([3, 4])
    expect(await seqs('', '3')).toEqual([4])
    expect(await seqs('?after=1', '3')).toEqual([4])
    expect(await seqs('?after=3', '1')).toEqual([4])
    expect(await seqs('', 'evt_x')).toEqual([1, 2, 3, 4])
  })

  test('output comes while it is printed, before the event that tells it whole', async () => {
    const id = await tasks.begin(inTwo('go1'))
    const followed = await tasks.follow(id)
    const first = await followed.until(({ event }) => event === 'output')
    expect(first.data).toEqual({
      type: 'output',
      call: 'call_1',
      stream: 'stdout',
      text: 'first\n',
      offset: 0,
    })
    expect((await tasks.get(id)).status).toBe('running')
    await touch('go1')
    const all = await followed.rest()
    const output = all.filter(({ event }) => event === 'output').map(({ data }) => data)
    expect(output.find(({ text }) => text === 'second\n')).toMatchObject({ stream: 'stderr', offset: 0 })
    expect(output.find(({ text }) => text === 'third\n')).toMatchObject({ stream: 'stdout', offset: 6 })
    const kept = all.filter(({ data }) => 'seq' in data).map(({ data }) => data)
    expect(kept).toEqual(await tasks.events(id))
    const result = all.findIndex(({ event }) => event === 'toolResult')
    expect(all.findLastIndex(({ event }) => event === 'output')).toBeLessThan(result)
    expect(all[result]?.data.output).toMatchObject({ stdout: 'first\nthird\n', stderr: 'second\n' })
  })

  test('a client that joins late sees the output under way, and nothing twice', async () => {
    const id = await tasks.begin(inTwo('go2'))
    const early = await tasks.follow(id)
    await early.until(({ event }) => event === 'output')
    const late = await tasks.follow(id)
    await late.until(({ event }) => event === 'output')
    await touch('go2')
    for (const followed of [early, late]) {
      await followed.rest()
      expect(followed.printed('stdout')).toBe('first\nthird\n')
      expect(followed.printed('stderr')).toBe('second\n')
      expect(followed.seqs).toEqual([1, 2, 3, 4])
    }
    const after = await tasks.follow(id)
    expect((await after.rest()).some(({ event }) => event === 'output')).toBe(false)
  })

  test('a reader who goes changes nothing for the task and for others', async () => {
    const id = await tasks.begin(inTwo('go3'))
    const leaving = new AbortController()
    const gone = await tasks.follow(id, '', { signal: leaving.signal })
    const stays = await tasks.follow(id)
    await gone.until(({ event }) => event === 'output')
    leaving.abort()
    await gone.rest().catch(() => {})
    await touch('go3')
    await stays.rest()
    expect(stays.printed('stdout')).toBe('first\nthird\n')
    expect((await tasks.get(id)).status).toBe('completed')
  })

  test('a slow reader misses no event, and is shown no piece of output twice', async () => {
    const goal = [
      'run: yes 0123456789abcdef0123456789abcdef0123456789abcdef | head -c 48000000',
      ...Array.from({ length: 300 }, (_, n) => `write: f${n % 5} <<< ${n}`),
      'run: touch full; until [ -e go4 ]; do sleep 0.02; done; echo the end',
    ].join('\n')
    const id = await tasks.begin(goal)
    const slow = await rawStream(`${tasks.path}/${id}/events`)
    const full = () => berth.exec(tasks.serverId, 'ls full 2>/dev/null || true')
    await until(async () => (await full()).stdout !== '', 'the agent is far ahead', 30_000)
    await touch('go4')
    await tasks.ends(id)
    const all = await slow.read()
    const seqs = all.flatMap(({ data }) => ('seq' in data ? [data.seq] : []))
    expect(seqs).toEqual((await tasks.events(id)).map(({ seq }) => seq))
    expect(seqs.length).toBe(606)
    let next = 0
    for (const { event, data } of all) {
      if (event !== 'output' || data.call !== 'call_1') continue
      expect(data.offset).toBeGreaterThanOrEqual(next)
      next = data.offset + data.text.length
    }
    // Otherwise it was not slow enough to try anything.
    expect(next).toBeLessThan(48_000_000)
  }, 120_000)

  test('the end is the last event that a slow reader receives, also in the middle of output', async () => {
    const id = await tasks.begin(
      'run: yes 0123456789abcdef0123456789abcdef | head -c 48000000; touch full6; sleep 600',
    )
    const slow = await rawStream(`${tasks.path}/${id}/events`)
    const full = () => berth.exec(tasks.serverId, 'ls full6 2>/dev/null || true')
    await until(async () => (await full()).stdout !== '', 'the agent is far ahead', 30_000)
    await tasks.cancel(id)
    expect((await slow.read()).at(-1)?.data).toMatchObject({ type: 'status', status: 'cancelled' })
  }, 120_000)

  test('what a command prints is shown whole, though not all of it is kept', async () => {
    const id = await tasks.begin('run: until [ -e go5 ]; do sleep 0.02; done; seq 60000')
    const followed = await tasks.follow(id)
    await touch('go5')
    await followed.rest()
    const printed = Array.from({ length: 60_000 }, (_, n) => `${n + 1}\n`).join('')
    expect(followed.printed('stdout') === printed).toBe(true)
    const { output } = (await tasks.events(id)).find(({ type }) => type === 'toolResult') as TaskEvent
    expect(output.truncated).toBe(true)
    expect(output.stdout).toMatch(/^1\n2\n[\s\S]*characters are left out here[\s\S]*\n60000\n$/)
  })
})

describe('secrets', () => {
  const VALUE = 'tr0ub4dor-and-3'

  /** A server of its own with a secret. */
  async function secretive(secrets: Record<string, string>): Promise<TaskCalls> {
    const serverId = await berth.server()
    await berth.call('PUT', '/secrets', { server_id: serverId, secrets })
    return new TaskCalls(berth, serverId)
  }

  test('are masked in transcript, question, answer and result, also split over pieces of output', async () => {
    const own = await secretive({ TOKEN: VALUE })
    await setScenarios(berth, [
      {
        match: 'secretly',
        steps: [
          {
            run: 'printf "$TOKEN" | cut -c1-8 | tr -d "\n"; sleep 0.1; printf "$TOKEN" | cut -c9-; sleep 0.1; echo " $TOKEN" >&2',
          },
          { write: { path: 't.txt', content: VALUE } },
          { run: { command: 'printf "%s" "$TOKEN"', as: 'token' } },
          { say: `it is ${VALUE}` },
          { ask: `Is ${VALUE} right?` },
          { complete: `done with ${VALUE}` },
        ],
      },
    ])
    const id = await own.begin('secretly')
    const followed = await own.follow(id)
    await followed.until(({ event }) => event === 'question')
    expect((await own.get(id)).question).toBe('Is *** right?')
    await own.answer(id, `yes, ${VALUE}`)
    const streamed = JSON.stringify(await followed.rest())
    expect((await own.get(id)).result).toBe('done with ***')
    const transcript = JSON.stringify(await own.events(id))
    const { events } = (await berth.control('GET', '/events?event=task.completed&limit=1')).body
    for (const text of [streamed, transcript, JSON.stringify(events)]) {
      expect(text).not.toContain(VALUE)
      expect(text).not.toContain('4dor')
      expect(text).toContain('***')
    }
    expect(followed.printed('stdout')).toBe('***\n***')
    expect(followed.printed('stderr')).toBe(' ***\n')
    // The agent itself has written what it was told to.
    expect((await berth.exec(own.serverId, 'cat t.txt')).stdout).toBe(VALUE)
  })

  test('that read like the words of the API hide nothing of what an event is', async () => {
    const own = await secretive({ A: 'toolResult', B: 'completed', C: 'call_1', D: 'status', E: 'running' })
    const task = await own.run('run: echo completed\ncomplete: it is completed')
    expect(task).toMatchObject({ status: 'completed', result: 'it is ***' })
    const events = await own.events(task.id)
    expect(events.map(({ type }) => type)).toEqual(['status', 'toolCall', 'toolResult', 'status'])
    expect(events[2]).toMatchObject({ call: 'call_1', tool: 'run', output: { stdout: '***\n' } })
    expect(events[3]).toMatchObject({ status: 'completed', result: 'it is ***' })
  })

  test('that were set while the task runs are masked from the next command on', async () => {
    const own = await secretive({})
    const id = await own.begin('ask: Set it?\nrun: echo "$LATER"')
    await own.reaches(id, 'awaiting_input')
    await berth.call('PUT', '/secrets', { server_id: own.serverId, secrets: { LATER: VALUE } })
    await own.answer(id, 'yes')
    await own.ends(id)
    const { output } = (await own.events(id)).find(({ type }) => type === 'toolResult') as TaskEvent
    expect(output.stdout).toBe('***\n')
  })

  test('that are many cost the tasks of a server once', async () => {
    const value = (n: number): string => `${n}:/+ "`.repeat(200).slice(0, 1_000)
    const own = await secretive(
      Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`V${n}`, value(n)])),
    )
    const beginning = async (count: number): Promise<number> => {
      const begun = performance.now()
      for (let n = 0; n < count; n += 1)
        await own.reaches(await own.begin('ask: What now?'), 'awaiting_input')
      return performance.now() - begun
    }
    const first = await beginning(1)
    expect(await beginning(16)).toBeLessThan(8 * first)
    const { result } = await own.run(`complete: it is ${value(899)}`)
    expect(result).toBe('it is ***')
  })
})

/** A connection to an event stream of which nothing is read before `read` is called. */
async function rawStream(path: string) {
  const { hostname, port, host } = new URL(berth.info.base_url)
  const socket = connect(Number(port), hostname)
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.pause()
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${berth.info.api_key}\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n`,
  )
  return {
    /** Reads it to its end. */
    async read() {
      const chunks: Uint8Array[] = []
      socket.on('data', (chunk: Uint8Array) => chunks.push(chunk))
      const ended = new Promise((resolve) => socket.once('close', resolve))
      socket.resume()
      await ended
      const body = unchunked(Buffer.concat(chunks))
      const events = []
      for await (const event of readEvents(new Response(body))) events.push(event)
      return events
    },
  }
}

/** The body of an answer in chunks (RFC 9112, 7.1). */
function unchunked(answer: Buffer): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = []
  for (let at = answer.indexOf('\r\n\r\n') + 4; at < answer.length; ) {
    const end = answer.indexOf('\r\n', at)
    const size = Number.parseInt(answer.toString('latin1', at, end), 16)
    if (!size) break
    parts.push(answer.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
  return new Uint8Array(Buffer.concat(parts))
}
