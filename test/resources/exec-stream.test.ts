import { describe, expect, test } from 'bun:test'
import { FRAME_KINDS, FRAMES_TYPE, readFrames } from '../../src/resources/exec/frames.ts'
import { berthForTests } from '../support/berth.ts'
import { readEvents } from '../support/events.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests()
const server = await berth.server()

/** Runs a command whose standard input is the body. */
const stream = (
  command: string,
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | string | null,
  init: RequestInit = {},
  query: object = {},
) =>
  berth.fetch(`/servers/${server}/exec/stream?${new URLSearchParams({ command, ...query })}`, {
    method: 'POST',
    body,
    ...init,
  })

const accept = (type: string): RequestInit => ({ headers: { accept: type } })

/** A body to write to piece by piece. */
function writable(): { body: ReadableStream<Uint8Array>; write(text: string): void; end(): void } {
  let controller: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given
    },
  })
  return {
    body,
    write: (text) => controller.enqueue(new TextEncoder().encode(text)),
    end: () => controller.close(),
  }
}

describe('POST /servers/{serverId}/exec/stream', () => {
  test('passes the body to the command as it comes, and its output meanwhile', async () => {
    const input = writable()
    const response = await stream('sed -u "s/^/got /"; echo end', input.body, accept('text/event-stream'))
    input.write('one\n')
    const outputs: unknown[] = []
    for await (const { event, data } of readEvents(response)) {
      outputs.push([event, data])
      if (outputs.length === 1) input.write('two\n')
      if (outputs.length === 2) input.end()
    }
    expect(outputs).toEqual([
      ['stdout', { data: 'got one\n' }],
      ['stdout', { data: 'got two\n' }],
      ['stdout', { data: 'end\n' }],
      ['exit', { exitCode: 0, timedOut: false, truncated: false }],
    ])
  })

  test('ends with the command, whatever of the body is still to come', async () => {
    const input = writable()
    input.write('x')
    const response = await stream('exit 4', input.body)
    expect(await response.json()).toMatchObject({ stdout: '', exitCode: 4 })
    const large = await stream('head -c 3', new Uint8Array(20_000_000).fill(120))
    expect(await large.json()).toMatchObject({ stdout: 'xxx', exitCode: 0 })
  })

  test('sends exact bytes of both streams and the end as frames', async () => {
    const bytes = new Uint8Array(3_000_000).map((_, index) => index * 7)
    const response = await stream('cat; echo problem >&2; exit 2', bytes, accept(FRAMES_TYPE))
    expect(response.headers.get('content-type')).toBe(FRAMES_TYPE)
    const received: Record<number, Uint8Array[]> = {}
    for await (const { kind, payload } of readFrames(response.body ?? new Blob().stream()))
      received[kind] = [...(received[kind] ?? []), payload.slice()]
    const of = (kind: number): Buffer => Buffer.concat(received[kind] ?? [])
    expect(of(FRAME_KINDS.stdout).equals(Buffer.from(bytes))).toBe(true)
    expect(of(FRAME_KINDS.stderr).toString()).toBe('problem\n')
    expect(JSON.parse(of(FRAME_KINDS.exit).toString())).toEqual({
      exitCode: 2,
      timedOut: false,
      truncated: false,
    })
  })

  test('sends standard output alone as bytes, and breaks off if the command fails', async () => {
    const bytes = new Uint8Array([0xff, 0, 0xc3])
    const plain = accept('application/octet-stream')
    const whole = await stream('cat; echo problem >&2', bytes, plain)
    expect(await whole.bytes()).toEqual(bytes)
    const failed = await stream('cat; sleep 0.2; exit 1', bytes, plain)
    expect(failed.status).toBe(200)
    expect(failed.bytes()).rejects.toThrow()
  })

  test('makes the client wait while the command does not read', async () => {
    const piece = new Uint8Array(65_536)
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += piece.length
        controller.enqueue(piece)
      },
    })
    const response = await stream('sleep 1; echo over', endless)
    expect(await response.json()).toMatchObject({ stdout: 'over\n' })
    expect(sent).toBeLessThan(30_000_000)
  })

  test('ends the command if the client disconnects, without an end of input', async () => {
    const gone = new AbortController()
    const input = writable()
    input.write('begun\n')
    const request = stream('echo $$ > pid; cat > part; echo end >> part', input.body, { signal: gone.signal })
    const read = async (path: string) =>
      (await berth.call('GET', `/servers/${server}/files?path=${path}`)).body.content
    await until(async () => (await read('part')) === 'begun\n', 'the command has read')
    gone.abort()
    expect(request).rejects.toThrow()
    const runs = async () => (await berth.exec(server, 'kill -0 $(cat pid)')).exitCode === 0
    await until(async () => !(await runs()), 'the command has ended')
    expect(await read('part')).toBe('begun\n')
  })

  test('refuses an invalid command, and a key for repeating', async () => {
    const noCommand = await berth.fetch(`/servers/${server}/exec/stream`, { method: 'POST', body: 'x' })
    expect(noCommand.status).toBe(400)
    expect((await stream('true', 'x', {}, { cwd: '..' })).status).toBe(400)
    const repeated = await stream('true', 'x', { headers: { 'idempotency-key': 'k' } })
    expect(await repeated.json()).toMatchObject({ error: 'bad_request' })
  })
})
