import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests } from '../../support/berth.ts'
import { readEvents } from '../../support/events.ts'
import { until } from '../../support/processes.ts'
import { type Detached, detach, ended, readAll } from './detached.ts'

setDefaultTimeout(60_000)

const berth = await berthForTests()
const server = await berth.server()

const exec = (body: object, headers?: Record<string, string>) =>
  berth.call('POST', `/servers/${server}/exec`, body, headers)
const run = (command: string, more?: object) => detach(berth, server, command, more)

/** Reads the event stream of an execution; each event with its id. */
async function* events({ output }: Detached, headers: Record<string, string> = {}, query = '') {
  const response = await berth.fetch(`${output}${query}`, {
    headers: { accept: 'text/event-stream', ...headers },
  })
  const [text, copy] = (response.body as ReadableStream<Uint8Array>).tee()
  const ids = new Response(copy).text()
  for await (const event of readEvents(new Response(text))) yield event
  lastIds = [...(await ids).matchAll(/^id: (.*)$/gm)].map(([, id]) => id ?? '')
}
let lastIds: string[] = []

async function collected(of: Detached, headers?: Record<string, string>, query?: string) {
  const all = []
  for await (const event of events(of, headers, query)) all.push(event)
  return all
}

test('a detached command gets 202 as soon as it runs, and its record tells of it until it has exited', async () => {
  const command = 'echo out; echo err >&2; read x < gate; exit 7'
  await berth.exec(server, 'rm -f gate; mkfifo gate')
  const { status, body } = await exec({ command, detach: true })
  expect(status).toBe(202)
  const { execution } = body
  expect(execution).toEqual({
    id: expect.stringMatching(/^exe_[0-9a-z]{26}$/),
    serverId: server,
    command,
    pid: expect.any(Number),
    status: 'running',
    exitCode: null,
    timedOut: false,
    stdoutBytes: expect.any(Number),
    stderrBytes: expect.any(Number),
    startedAt: expect.stringMatching(/Z$/),
    endedAt: null,
  })
  const path = `/servers/${server}/executions/${execution.id}`
  const read = async () => (await berth.call('GET', `${path}/output`)).body
  await until(async () => (await read()).output.length === 2, 'both lines')
  const { processes } = (await berth.call('GET', `/servers/${server}/processes`)).body
  expect(processes.find(({ pid }: { pid: number }) => pid === execution.pid)?.belongs_to).toEqual({
    kind: 'exec',
    id: execution.id,
  })
  const waiting = berth.control('GET', `/wait?execution=${execution.id}&until=exited`)
  await berth.exec(server, 'echo > gate')
  const waited = (await waiting).body
  expect(waited).toMatchObject({ matched: true, execution: { status: 'exited', exitCode: 7 } })
  expect((await berth.call('GET', path)).body).toEqual({ execution: waited.execution })
  expect(waited.execution).toMatchObject({ stdoutBytes: 4, stderrBytes: 4, endedAt: expect.any(String) })
  const list = (await berth.call('GET', `/servers/${server}/executions`)).body.executions
  expect(list[0]).toEqual(waited.execution)
})

test('output is read in pages and by stream, none of it twice and none left out', async () => {
  const execution = await run('for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done')
  await ended(berth, execution)
  const { stdout, stderr, pages } = await readAll(berth, execution, 1)
  expect({ stdout, stderr }).toEqual({ stdout: 'out 1\nout 2\nout 3\n', stderr: 'err 1\nerr 2\nerr 3\n' })
  expect(pages.length).toBe(6)
  const whole = (await berth.call('GET', execution.output)).body
  expect(
    whole.output.map(({ stream, offset, data }: { stream: string; offset: number; data: string }) => [
      stream,
      offset,
      data,
    ]),
  ).toEqual([
    ['stdout', 0, 'out 1\n'],
    ['stderr', 0, 'err 1\n'],
    ['stdout', 6, 'out 2\n'],
    ['stderr', 6, 'err 2\n'],
    ['stdout', 12, 'out 3\n'],
    ['stderr', 12, 'err 3\n'],
  ])
  expect(whole.next).toBe(whole.output.at(-1).id)
  expect(whole.dropped).toEqual({ stdout: 0, stderr: 0 })
  const rest = (await berth.call('GET', `${execution.output}?after=${whole.output[2].id}&stream=stderr`)).body
  expect(rest.output.map(({ data }: { data: string }) => data).join('')).toBe('err 2\nerr 3\n')
  const none = (await berth.call('GET', `${execution.output}?after=${whole.next}`)).body
  expect([none.output, none.next]).toEqual([[], whole.next])
})

test('the first 64 KiB and the last 1 MiB of each stream are kept, and what is missing is counted', async () => {
  const execution = await run('seq 1 400000; yes é | head -c 1500000 >&2')
  const { stdoutBytes, stderrBytes } = await ended(berth, execution)
  expect([stdoutBytes, stderrBytes]).toEqual([2_688_895, 1_500_000])
  const { stdout, stderr, pages } = await readAll(berth, execution)
  const dropped = pages[0]?.dropped ?? { stdout: 0, stderr: 0 }
  expect(dropped.stdout).toBe(2_688_895 - 65_536 - 1_048_576)
  expect([stdout.length, stderr.length]).toEqual([65_536 + 1_048_576, 1_500_000 - dropped.stderr])
  const all = Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join('')
  expect(stdout.slice(0, 65_536) === all.slice(0, 65_536)).toBe(true)
  expect(stdout.slice(65_536) === all.slice(-1_048_576)).toBe(true)
  // No character is split where the middle is missing.
  expect(pages.flatMap(({ output }) => output.filter(({ encoding }) => encoding)).length).toBe(0)
  const gaps = (await collected(execution)).filter(({ event }) => event === 'gap')
  expect(gaps.map(({ data }) => data)).toEqual([
    { stream: 'stdout', dropped: dropped.stdout },
    { stream: 'stderr', dropped: dropped.stderr },
  ])
})

test('an event stream goes on where Last-Event-ID says, and tells of a gap where that is unknown', async () => {
  const execution = await run('echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three')
  const all = await collected(execution)
  const ids = lastIds
  expect(all).toEqual([
    { event: 'stdout', data: { data: 'one\n' } },
    { event: 'stderr', data: { data: 'two\n' } },
    { event: 'stdout', data: { data: 'three\n' } },
    { event: 'exit', data: { status: 'exited', exitCode: 0, timedOut: false, truncated: false } },
  ])
  expect(ids.length).toBe(3)
  expect(await collected(execution, { 'last-event-id': ids[0] ?? '' })).toEqual(all.slice(1))
  expect((await collected(execution, { 'last-event-id': 'nonsense' }))[0]).toEqual({ event: 'gap', data: {} })
  expect((await collected(execution, {}, `?after=${ids[1]}&stream=stdout`))[0]).toEqual({
    event: 'stdout',
    data: { data: 'three\n' },
  })
})

test('follow waits for more output, and responds at the end of the command', async () => {
  const execution = await run('echo begun; read x; printf more; read x', { openStdin: true })
  const follow = (after: string) => berth.call('GET', `${execution.output}?after=${after}&follow=true`)
  const enter = (end: boolean) => berth.call('POST', `${execution.path}/input`, { text: '\n', end })
  const first = (await follow('0')).body
  expect(first.output.map(({ data }: { data: string }) => data)).toEqual(['begun\n'])
  const more = follow(first.next)
  await enter(false)
  const page = (await more).body
  expect(page.output.map(({ data }: { data: string }) => data)).toEqual(['more'])
  const end = follow(page.next)
  await enter(true)
  expect((await end).body).toMatchObject({ output: [], execution: { status: 'exited', exitCode: 0 } })
})

test('bytes that are not UTF-8 are exact as base64, and a character that comes in two pieces is one', async () => {
  const execution = await run("printf 'a\\303'; sleep 0.2; printf '\\251b\\n'; sleep 0.1; printf '\\377' >&2")
  const all = await collected(execution)
  const text = all.flatMap(({ event, data }) => (event === 'stdout' ? [data.data] : []))
  expect(text.join('')).toBe('aéb\n')
  expect(all).toContainEqual({ event: 'stderr', data: { data: '/w==', encoding: 'base64' } })
})

test('open standard input takes text and bytes until its end, and is refused otherwise', async () => {
  const open = await run('cat; echo over', { openStdin: true, stdin: 'first\n' })
  const write = (of: Detached, body: object) => berth.call('POST', `${of.path}/input`, body)
  expect((await write(open, { text: 'é\n' })).body).toEqual({ written: 3 })
  expect((await write(open, { base64: 'AP8=' })).body).toEqual({ written: 2 })
  expect((await write(open, { base64: 'no base64!' })).status).toBe(400)
  expect((await write(open, { text: 'a', base64: 'YQ==' })).status).toBe(400)
  expect((await write(open, {})).status).toBe(400)
  expect((await write(open, { end: true })).body).toEqual({ written: 0 })
  expect((await ended(berth, open)).exitCode).toBe(0)
  expect((await readAll(berth, open)).stdout).toBe('first\n\u00c3\u00a9\n\0\u00ffover\n')
  const closed = await write(open, { text: 'late' })
  expect([closed.status, closed.body.error]).toEqual([400, 'bad_request'])
  const without = await run('cat; sleep 300', { stdin: 'all there is' })
  const refused = await write(without, { text: 'x' })
  expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('"openStdin": true')])
  await until(async () => (await readAll(berth, without)).stdout === 'all there is', 'its input')
  const ending = await run('cat > /dev/null; sleep 300', { openStdin: true })
  await write(ending, { end: true })
  expect((await write(ending, { text: 'x' })).status).toBe(400)
  for (const one of [without, ending]) await berth.call('DELETE', one.path)
})

test('more input than the command reads is refused, and berth keeps no more of it', async () => {
  const execution = await run('sleep 300', { openStdin: true })
  const base64 = Buffer.alloc(8 * 1024 * 1024).toString('base64')
  const statuses = []
  for (let n = 0; n < 4; n++)
    statuses.push((await berth.call('POST', `${execution.path}/input`, { base64 })).status)
  expect(statuses[0]).toBe(200)
  expect(statuses.at(-1)).toBe(403)
  await berth.call('DELETE', execution.path)
})

test('DELETE ends a command and keeps its record, and removes the record of one that has ended', async () => {
  const execution = await run('echo here; trap "echo bye; exit 9" TERM; while :; do sleep 0.05; done')
  await until(async () => (await readAll(berth, execution)).stdout === 'here\n', 'its output')
  expect((await berth.call('DELETE', execution.path)).body).toEqual({ id: execution.id, deleted: true })
  const { body } = await berth.call('GET', execution.path)
  expect(body.execution).toMatchObject({ status: 'exited', exitCode: 9 })
  expect((await readAll(berth, execution)).stdout).toBe('here\nbye\n')
  expect(readdirSync(join(berth.dataDir, 'executions', server))).toContain(execution.id)
  expect((await berth.call('DELETE', execution.path)).status).toBe(200)
  for (const path of [execution.path, execution.output])
    expect((await berth.call('GET', path)).status).toBe(404)
  expect((await berth.call('DELETE', execution.path)).status).toBe(404)
  expect(readdirSync(join(berth.dataDir, 'executions', server))).not.toContain(execution.id)
})

test('detach is refused with a streaming Accept and at exec/stream, and openStdin without it', async () => {
  const body = { command: 'true', detach: true }
  for (const accept of ['text/event-stream', 'application/vnd.berth.exec', 'application/octet-stream']) {
    const refused = await exec(body, { accept })
    expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
  }
  const stream = `/servers/${server}/exec/stream?command=true`
  for (const query of ['detach=true', 'openStdin=true'])
    expect((await berth.fetch(`${stream}&${query}`, { method: 'POST', body: '' })).status).toBe(400)
  expect((await exec({ command: 'true', openStdin: true })).status).toBe(400)
  expect((await exec({ command: 'true', detach: 'yes' })).status).toBe(400)
  expect((await exec({ ...body, cwd: 'nowhere' })).status).toBe(400)
  expect((await exec({ command: 'true', detach: false })).status).toBe(200)
})

test('an unknown id is 404, and so is one of another server; an invalid position is 400', async () => {
  const execution = await run('true')
  await ended(berth, execution)
  const other = await berth.server()
  for (const path of [
    `/servers/${other}/executions/${execution.id}`,
    `/servers/${server}/executions/exe_x`,
  ]) {
    expect((await berth.call('GET', path)).status).toBe(404)
    expect((await berth.call('GET', `${path}/output`)).status).toBe(404)
    expect((await berth.call('POST', `${path}/input`, { text: 'x' })).status).toBe(404)
    expect((await berth.call('DELETE', path)).status).toBe(404)
  }
  for (const after of ['x', '1', '-1', '1-', '1-2-3']) {
    const { status, body } = await berth.call('GET', `${execution.output}?after=${after}`)
    expect([status, body.message]).toEqual([400, expect.stringContaining('"after"')])
  }
  expect((await berth.call('GET', `${execution.output}?after=0`)).status).toBe(200)
  await berth.call('DELETE', `/servers/${other}`)
})

test('the changes of an account tell of an execution that begins, ends and is removed', async () => {
  const response = await berth.fetch('/changes', { headers: { accept: 'text/event-stream' } })
  const stream = readEvents(response)
  const next = async (id?: string) => {
    for await (const { data } of { [Symbol.asyncIterator]: () => ({ next: () => stream.next() }) })
      if (data.type === 'ready' ? id === undefined : data.type === 'execution' && data.id === id) return data
  }
  await next()
  const execution = await run('read x', { openStdin: true })
  expect(await next(execution.id)).toMatchObject({ server_id: server, value: { status: 'running' } })
  await berth.call('POST', `${execution.path}/input`, { end: true })
  expect(await next(execution.id)).toMatchObject({ value: { status: 'exited', exitCode: 1 } })
  await berth.call('DELETE', execution.path)
  expect(await next(execution.id)).toMatchObject({ value: null })
  await stream.return(undefined)
})
