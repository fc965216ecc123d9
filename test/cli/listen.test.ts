import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseTarget } from '../../src/cli/commands/listen.ts'
import { forward } from '../../src/cli/listen/forward.ts'
import { receiver, replyWith, verify } from '../support/receiver.ts'
import { serve, serveForTests, start, temporaryFolder } from './command.ts'

const berth = await serveForTests(['--isolation', 'none'])

/** What `berth listen --json` prints, line by line. */
interface Listener extends AsyncDisposable {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  next(type: string): Promise<any>
  /** Ends it as Ctrl-C does; resolves to its exit code and stderr. */
  end(): Promise<[number, string]>
}

/** Starts it in a folder, and waits until it listens. */
async function listen(cwd: string, ...args: string[]): Promise<Listener & { secret: string }> {
  const child = start(['listen', '--json', ...args], { cwd })
  const stderr = child.stderr.text()
  const lines = linesOf(child.stdout)
  const listener: Listener = {
    async next(type) {
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`it ended without "${type}": ${await stderr}`)
        const line = JSON.parse(value)
        if (line.type === type) return line
        if (line.type === 'event') throw new Error(`an event came before "${type}": ${value}`)
      }
    },
    async end() {
      child.kill('SIGINT')
      return [await child.exited, await stderr]
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
  const { secret } = await listener.next('ready')
  return { ...listener, secret }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  let text = ''
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    yield* lines
  }
}

const trigger = async (event: string, ...args: string[]) => {
  const { stdout, stderr } = await berth.run(['trigger', event, '--json', ...args])
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

describe('berth listen', () => {
  test('forwards each event in order, signed with the secret that it prints, as a webhook would be', async () => {
    await using target = await receiver()
    await using listener = await listen(berth.cwd, '--forward-to', target.url)
    const sent = [
      await trigger('quota.threshold'),
      await trigger('deployment.live', '--payload', '{"url":"é"}'),
    ]
    for (const { id, event, data, created_at } of sent) {
      const told = await listener.next('event')
      expect(told).toMatchObject({ id, event, data, forwarded: { status: 200, error: null } })
      const got = target.received.find(({ headers }) => headers['webhook-id'] === id)
      expect(got && verify(listener.secret, got)).toEqual({ event, ...data, created_at })
      expect(got?.headers).toMatchObject({ 'content-type': 'application/json' })
    }
    expect(target.received.map(({ headers }) => headers['webhook-id'])).toEqual(sent.map(({ id }) => id))
    const secret = async () => (await berth.run(['listen', '--print-secret'])).stdout
    expect([await secret(), await secret()]).toEqual([`${listener.secret}\n`, `${listener.secret}\n`])
    expect(listener.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(await listener.end()).toEqual([0, ''])
  })

  test('reports a receiver that fails, redirects, cuts off or is not there, and goes on', async () => {
    await using elsewhere = await receiver()
    const target = await receiver({ reply: replyWith(500, 'no such table') })
    await using listener = await listen(berth.cwd, '--forward-to', target.url)
    const outcome = async () => {
      await trigger('tuning.started')
      return (await listener.next('event')).forwarded
    }
    expect(await outcome()).toMatchObject({
      status: 500,
      response: 'no such table',
      error: expect.stringContaining('500'),
    })
    target.reply = replyWith(302, '', { location: elsewhere.url })
    expect(await outcome()).toMatchObject({ status: 302, error: expect.stringContaining('not followed') })
    target.reply = (response) => void response.destroy()
    expect(await outcome()).toMatchObject({
      status: null,
      error: expect.stringContaining('without a response'),
    })
    await target[Symbol.asyncDispose]()
    expect(await outcome()).toMatchObject({
      status: null,
      error: expect.stringContaining('Nothing listens there'),
    })
    expect(elsewhere.received).toEqual([])
    expect((await listener.end())[0]).toBe(0)
  })

  test('shows people one line for each, without what would steer their terminal', async () => {
    await using target = await receiver({ reply: replyWith(418, 'no\u001b[31m\n  tea\u0007') })
    const child = start(['listen', '--forward-to', target.url], { cwd: berth.cwd })
    const lines = linesOf(child.stdout)
    const shown: string[] = []
    const upTo = async (text: string) => {
      for (let line = ''; !line.includes(text); shown.push(line)) line = (await lines.next()).value ?? text
    }
    await upTo('Ctrl-C')
    const { id } = await trigger('task.failed', '--payload', '{"task_id":"task_1\\u001b[2J"}')
    await upTo('tea')
    child.kill('SIGINT')
    await upTo('forwarded')
    expect(await child.exited).toBe(0)
    expect(shown.join('\n')).toMatch(
      /^Forwarding the events of http:\S+ to http:\S+\nSigning secret: whsec_\S+\n/,
    )
    const [event, problem, answer, summary] = shown.slice(-4)
    expect(event).toMatch(
      new RegExp(`^\\d\\d:\\d\\d:\\d\\d  task\\.failed +418 +\\d+ ms  ${id}  task_1�\\[2J$`),
    )
    expect(problem).toMatch(/^ {10}The receiver answered with 418\.$/)
    expect(answer).toMatch(/^ {10}no tea�$/)
    expect(summary).toBe('1 event forwarded, 1 of which the receiver did not take.')
  })

  test('picks events and accounts', async () => {
    const { body: account } = await control('POST', '/accounts', { label: 'other' })
    await using tasks = await listen(berth.cwd, '--events', 'task.*, quota.threshold')
    await using others = await listen(berth.cwd, '--account', account.id)
    await trigger('server.created')
    const failed = await trigger('task.failed')
    const threshold = await trigger('quota.threshold', '--account', account.id)
    expect([await tasks.next('event'), await tasks.next('event')]).toMatchObject([
      { id: failed.id, forwarded: null },
      { id: threshold.id },
    ])
    expect((await others.next('event')).id).toBe(threshold.id)
  })

  test('goes on where the instance is reset or started again, with nothing lost and nothing twice', async () => {
    using folder = temporaryFolder()
    const first = await serve(['--isolation', 'none'], { cwd: folder.path })
    await using target = await receiver()
    const emit = async (event: string) =>
      JSON.parse((await first.run(['trigger', event, '--json'])).stdout).id as string
    const emitted: string[] = [await emit('tuning.started')]
    await using listener = await listen(folder.path, '--forward-to', target.url)
    emitted.push(await emit('task.created'))
    await first.run(['snapshot', 'save', 'earlier'])
    emitted.push(await emit('task.completed'))
    await first.run(['reset'])
    emitted.push(await emit('tuning.completed'))
    // What was emitted before it listened, and what it has told, is not told again.
    await first.run(['snapshot', 'restore', 'earlier'])
    emitted.push(await emit('task.failed'))
    for (const id of emitted.slice(1, 3)) expect((await listener.next('event')).id).toBe(id)
    for (const id of emitted.slice(3)) {
      await listener.next('anew')
      expect((await listener.next('event')).id).toBe(id)
    }
    first.child.kill('SIGKILL')
    await first.child.exited
    await listener.next('lost')
    await using second = await serve(['--isolation', 'none'], { cwd: folder.path })
    emitted.push(await emit('quota.threshold'))
    expect((await listener.next('back')).base_url).toBe(second.info.base_url)
    expect((await listener.next('event')).id).toBe(emitted.at(-1))
    const ids = target.received.map(({ headers }) => headers['webhook-id'])
    expect(ids).toEqual(emitted.slice(1))
    expect(await listener.end()).toEqual([0, ''])
  }, 120_000)

  test('an instance in place of the one before has its events forwarded with its own secret', async () => {
    using folder = temporaryFolder()
    const first = await serve(['--isolation', 'none'], { cwd: folder.path })
    await using target = await receiver()
    await using listener = await listen(folder.path, '--forward-to', target.url)
    first.child.kill('SIGTERM')
    await first.child.exited
    rmSync(join(folder.path, '.berth'), { recursive: true })
    await using second = await serve(['--isolation', 'none'], { cwd: folder.path })
    const { id } = JSON.parse((await second.run(['trigger', 'task.created', '--json'])).stdout)
    await listener.next('back')
    expect((await listener.next('event')).id).toBe(id)
    const secret = (await second.run(['listen', '--print-secret'])).stdout.trim()
    expect(secret).not.toBe(listener.secret)
    const [got] = await target.got(1)
    expect(got && verify(secret, got)).toMatchObject({ event: 'task.created' })
  }, 120_000)

  test.each([
    [['--forward-to', 'ftp://localhost/'], 2, '--forward-to must look like'],
    [['--forward-to', 'http://me:secret@localhost/'], 2, 'no credentials'],
    [['--events', 'task.created,task.exploded'], 2, 'There is no event "task.exploded"'],
    [['--account', 'acct_none'], 1, 'There is no account "acct_none"'],
    [['--base-url', 'http://127.0.0.1:1', '--admin-token', 'admin_x'], 1, 'Nothing answers at'],
    [['--admin-token', 'admin_x'], 1, 'missing_or_invalid_api_key'],
  ])('refuses %p', async (args, exitCode, named) => {
    const outcome = await berth.run(['listen', ...args])
    // A copy: the matcher writes its wildcards into what it is given.
    expect({ ...outcome }).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining(named) })
    expect(outcome.stderr).not.toContain('secret@')
  })
})

test('a response that does not arrive in time is a failure', async () => {
  await using target = await receiver({ reply: () => {} })
  const event = {
    id: 'evt_1',
    event: 'task.created',
    account_id: 'acct_1',
    request_id: null,
    data: {},
    created_at: '',
  } as const
  const signal = new AbortController().signal
  const secret = 'whsec_c2VjcmV0'
  const forwarded = await forward(event, { url: target.url, secret, signal, timeoutMs: 100 })
  expect(forwarded).toMatchObject({ status: null, error: expect.stringContaining('within 0.1 s') })
})

test.each([
  ['3000', 'http://localhost:3000/'],
  ['3000/hook?a=1', 'http://localhost:3000/hook?a=1'],
  [':3000/hook', 'http://localhost:3000/hook'],
  ['localhost:3000/hook', 'http://localhost:3000/hook'],
  ['[::1]:3000', 'http://[::1]:3000/'],
  ['https://app.test/hook', 'https://app.test/hook'],
])('--forward-to %s means %s', (given, url) => {
  expect(parseTarget(given)).toBe(url)
})

async function control(method: string, path: string, body: unknown) {
  const response = await fetch(`${berth.info.base_url}/_berth${path}`, {
    method,
    headers: { authorization: `Bearer ${berth.info.admin_token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return { status: response.status, body: (await response.json()) as any }
}
