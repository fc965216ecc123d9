/** The calls of calls.json, by the TypeScript client: run by `berth run -- node --test built/calls.js`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  AuthenticationError,
  BadRequestError,
  Berth,
  BerthError,
  BudgetExceededError,
  type Change,
  ConnectionError,
  ForbiddenError,
  InternalError,
  NotFoundError,
  PlanLimitError,
  ProjectFailedError,
  type Server,
  UnavailableError,
  WebhookVerificationError,
} from '@owner/berth-client'
import { berth, type FaultEffect, type TestAccount, WaitTimeoutError } from '@owner/berth-client/testing'

let account: TestAccount
let server: Server
const local = mkdtempSync(join(tmpdir(), 'berth-client-'))
before(async () => {
  account = await berth.account({ label: 'calls' })
  server = await account.servers.create({ task: 'calls', tier: 'small' })
})
after(async () => {
  rmSync(local, { recursive: true, force: true })
  await account.remove()
})

/** The number of lines of a file that a command appends to; 0 if it does not exist. */
const linesOf = async (path: string): Promise<number> =>
  Number((await server.exec(`cat ${path} 2>/dev/null | wc -l`)).stdout)

const textAt = async (url: string | null | undefined): Promise<string> => {
  assert.ok(url)
  return (await fetch(url)).text()
}

test('server', async () => {
  assert.equal(server.status, 'running')
  assert.equal(server.task, 'calls')
  await server.update({ task: 'renamed' })
  assert.equal((await account.servers.get(server.id)).task, 'renamed')
  assert.ok((await account.servers.list()).some(({ id }) => id === server.id))
})

test('low-level', async () => {
  const { data } = await account.api.GET('/servers/{serverId}/processes', {
    params: { path: { serverId: server.id } },
  })
  assert.ok(Array.isArray(data?.processes))
})

test('exec', async () => {
  const { stdout, stderr, exitCode, timedOut } = await server.exec('echo out; echo err >&2; exit 3')
  assert.deepEqual(
    { stdout, stderr, exitCode, timedOut },
    { stdout: 'out\n', stderr: 'err\n', exitCode: 3, timedOut: false },
  )
})

test('exec-options', async () => {
  await server.files.write('inside/here.txt', '')
  const options = { cwd: 'inside', stdin: 'typed\n', env: { GREETING: 'hello' } }
  const { stdout } = await server.exec('basename "$PWD"; cat; echo $GREETING', options)
  assert.equal(stdout, 'inside\ntyped\nhello\n')
  const late = await server.exec('sleep 30', { timeoutMs: 200 })
  assert.equal(late.timedOut, true)
})

test('exec-callbacks', async () => {
  await server.exec('mkfifo gate')
  const heard: string[] = []
  let opened: Promise<unknown> | undefined
  const result = await server.exec('echo one; read line < gate; echo two', {
    onStdout(text) {
      heard.push(text)
      opened ??= server.exec('echo open > gate')
    },
  })
  await opened
  assert.equal(heard[0], 'one\n')
  assert.equal(heard.join(''), 'one\ntwo\n')
  assert.equal(result.stdout, 'one\ntwo\n')
})

test('exec-abort', async () => {
  const abort = new AbortController()
  await assert.rejects(
    server.exec('echo begun; exec sleep 4711', { onStdout: () => abort.abort(), signal: abort.signal }),
    { name: 'AbortError' },
  )
  const { stdout } = await server.exec(
    'while pgrep -f "sleep 471[1]" > /dev/null; do sleep 0.05; done; echo gone',
  )
  assert.equal(stdout, 'gone\n')
})

test('execute', async () => {
  const execution = await server.execute('read line; echo got $line', { openStdin: true })
  assert.equal(execution.status, 'running')
  await execution.write('hello\n')
  const { stdout, exitCode } = await execution.wait()
  assert.deepEqual({ stdout, exitCode }, { stdout: 'got hello\n', exitCode: 0 })
  assert.equal(execution.status, 'exited')
  assert.ok((await server.executions()).some(({ id }) => id === execution.id))
  await execution.delete()
})

test('files-text', async () => {
  await server.files.write('notes/héllo.txt', 'grüße\n')
  assert.equal(await server.files.read('notes/héllo.txt'), 'grüße\n')
  assert.ok((await server.files.list()).includes('notes/héllo.txt'))
  await server.files.delete('notes/héllo.txt')
  await assert.rejects(server.files.read('notes/héllo.txt'), NotFoundError)
})

test('files-bytes', async () => {
  await server.files.write('logo.bin', new Uint8Array([0, 255, 128]))
  assert.deepEqual(await server.files.readBytes('logo.bin'), new Uint8Array([0, 255, 128]))
  const large = Uint8Array.from({ length: 3 * 1024 * 1024 }, (_, index) => index % 251)
  await server.files.write('large.bin', large)
  assert.deepEqual(await server.files.readBytes('large.bin'), large)
})

test('directory', async () => {
  const tree = join(local, 'tree')
  for (const name of ['deep/er', 'node_modules/x', '.git']) mkdirSync(join(tree, name), { recursive: true })
  const long = `deep/${'n'.repeat(120)}.txt`
  writeFileSync(join(tree, 'deep/er/text.txt'), 'grüße\n')
  writeFileSync(join(tree, long), 'long')
  writeFileSync(join(tree, 'run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o755 })
  writeFileSync(join(tree, 'bytes.bin'), new Uint8Array([0, 255, 128]))
  writeFileSync(join(tree, 'node_modules/x/index.js'), '')
  writeFileSync(join(tree, '.git/HEAD'), '')
  await server.files.uploadDirectory(tree, 'tree')
  assert.equal((await server.exec('./run.sh', { cwd: 'tree' })).stdout, 'ran\n')
  assert.equal((await server.exec('ls -a tree')).stdout.includes('node_modules'), false)

  const back = join(local, 'back')
  await server.files.downloadDirectory('tree', back)
  assert.deepEqual(readdirSync(back).sort(), ['bytes.bin', 'deep', 'run.sh'])
  assert.equal(readFileSync(join(back, 'deep/er/text.txt'), 'utf8'), 'grüße\n')
  assert.equal(readFileSync(join(back, long), 'utf8'), 'long')
  assert.deepEqual(new Uint8Array(readFileSync(join(back, 'bytes.bin'))), new Uint8Array([0, 255, 128]))
  assert.equal(statSync(join(back, 'run.sh')).mode & 0o100, 0o100)

  await assert.rejects(
    server.files.downloadDirectory('nowhere', join(local, 'nowhere')),
    /ended with \d+: .*nowhere/,
  )
  await server.exec('mkdir leads; ln -s /etc leads/out; mkdir inside; ln -s . inside/link')
  await assert.rejects(server.files.downloadDirectory('leads', join(local, 'leads')), /leads out of/)
  await server.files.downloadDirectory('inside', join(local, 'inside'))
  assert.equal(readlinkSync(join(local, 'inside/link')), '.')
  // A file that vanishes while it is sent is an error, and not a request without end.
  const vanishing = {
    filter(path: string) {
      if (path === 'run.sh') rmSync(join(tree, 'bytes.bin'))
      return true
    },
  }
  await assert.rejects(server.files.uploadDirectory(tree, 'again', vanishing), { code: 'ENOENT' })
})

test('task', async () => {
  const types: string[] = []
  const goal = 'write: report.md <<< All is well.'
  const task = await server.tasks.run(goal, { onEvent: ({ type }) => types.push(type) })
  assert.equal(task.status, 'completed')
  assert.equal(await server.files.read('report.md'), 'All is well.')
  assert.ok(types.includes('toolCall'), types.join())
  assert.equal(types.at(-1), 'status')
})

test('task-question', async () => {
  const asked: string[] = []
  const answered = await server.tasks.run('ask: Which colour?\ncomplete: done', {
    onQuestion(question) {
      asked.push(question)
      return 'red'
    },
  })
  assert.deepEqual([asked, answered.status, answered.result], [['Which colour?'], 'completed', 'done'])
  const waiting = await server.tasks.run('ask: Which colour?')
  assert.deepEqual([waiting.status, waiting.question], ['awaiting_input', 'Which colour?'])
  assert.equal((await waiting.cancel()).status, 'cancelled')
})

test('build', async () => {
  const builder = await account.servers.create({ task: 'build' })
  const lines: string[] = []
  const build = await builder.builds.run('A page\nwrite: index.html <<< <h1>Hello</h1>', {
    onLog: ({ text }) => lines.push(text),
  })
  assert.equal(build.status, 'completed')
  assert.match(await textAt(build.url), /<h1>Hello<\/h1>/)
  assert.notEqual(lines.length, 0)
  await builder.delete()
})

test('project', async () => {
  const site = join(local, 'site')
  mkdirSync(site)
  writeFileSync(join(site, 'index.html'), '<h1>one</h1>')
  writeFileSync(join(site, 'other.html'), 'other')
  const project = await server.projects.create({ directory: site, name: 'site', visibility: 'public' })
  assert.equal(project.init_phase, 'ready')
  assert.match(await textAt(project.url), /one/)
  writeFileSync(join(site, 'index.html'), '<h1>two</h1>')
  const { written, removed } = await project.push(site)
  assert.deepEqual({ written, removed }, { written: 1, removed: 0 })
  assert.match(await textAt(project.url), /two/)
  await project.delete()
  await assert.rejects(account.projects.get(project.id), NotFoundError)

  const broken = join(local, 'broken')
  mkdirSync(broken)
  writeFileSync(join(broken, 'package.json'), '{"scripts": {"start": "echo broken; exit 1"}}')
  const failure = await server.projects.create({ directory: broken }).catch((thrown: unknown) => thrown)
  assert.ok(failure instanceof ProjectFailedError)
  assert.deepEqual([failure.phase, failure.log.includes('broken')], ['start', true])
  await (await account.projects.get(failure.projectId)).delete()
})

test('project-secrets', async () => {
  await using project = await server.projects.create({ name: 'blank' })
  await project.setSecrets({ COLOUR: 'red' })
  assert.ok((await server.projects.list()).some(({ id }) => id === project.id))
  assert.ok((await account.projects.list()).some(({ id }) => id === project.id))
})

test('deployment', async () => {
  const publisher = await account.servers.create({ task: 'publish' })
  await publisher.files.write('index.html', '<h1>Published</h1>')
  const { url } = await publisher.deployments.create()
  assert.match(await textAt(url), /Published/)
  await publisher.delete()
})

test('keys', async () => {
  const other = await account.servers.create({ task: 'other' })
  const { id, key } = await account.keys.create({ label: 'one', allowed_server_ids: [server.id] })
  const scoped = new Berth({ baseUrl: account.baseUrl, apiKey: key })
  assert.deepEqual(
    (await scoped.servers.list()).map((one) => one.id),
    [server.id],
  )
  await assert.rejects(scoped.servers.create(), ForbiddenError)
  const [own, reached] = [await account.account(), await scoped.account()]
  assert.deepEqual([own.id, own.key.scoped, own.plan.tiers.includes('small')], [account.id, false, true])
  assert.deepEqual([reached.id, reached.key], [account.id, { id, label: 'one', scoped: true }])
  await account.keys.delete(id)
  await assert.rejects(scoped.servers.list(), AuthenticationError)
  await other.delete()
})

test('errors', async () => {
  const error = await account.servers.get('srv_missing').catch((thrown: unknown) => thrown)
  assert.ok(error instanceof NotFoundError)
  assert.deepEqual([error.status, error.code, error.name], [404, 'not_found', 'NotFoundError'])
  assert.match(error.message, /srv_missing/)
  assert.match(error.requestId ?? '', /^req_/)

  await using poor = await berth.account({ budget_cap: 10 })
  const own = await poor.servers.create()
  await poor.change({ credits_used: 10 })
  await assert.rejects(own.tasks.create('complete: done'), BudgetExceededError)
  await poor.change({ credits_used: 0, limits: { tiers: ['small'] } })
  await assert.rejects(poor.servers.create({ tier: 'large' }), PlanLimitError)
  // @ts-expect-error A tier that does not exist.
  await assert.rejects(poor.servers.create({ tier: 'huge' }), BadRequestError)
})

test('webhook', async () => {
  const inbox = await account.inbox()
  const webhook = await account.webhooks.create({ url: inbox.url, events: ['task.completed'] })
  const task = await server.tasks.run('complete: done')
  const [entry] = await inbox.wait()
  assert.ok(entry)
  const { headers, body } = entry as { headers: Record<string, string>; body: string }
  const event = account.webhooks.verify(headers, body, webhook.secret)
  assert.deepEqual([event.event, event.task_id], ['task.completed', task.id])
  const changed = body.replace(task.id, 'task_other')
  assert.throws(() => account.webhooks.verify(headers, changed, webhook.secret), WebhookVerificationError)
  const later = { now: Date.now() + 600_000 }
  assert.throws(() => account.webhooks.verify(headers, body, webhook.secret, later), WebhookVerificationError)
  await account.webhooks.delete(webhook.id)
})

test('changes', async () => {
  const abort = new AbortController()
  let created: Server | undefined
  let change: Extract<Change, { type: 'server' }> | undefined
  for await (const next of account.changes({ signal: abort.signal })) {
    if (next.type === 'ready') created = await account.servers.create({ task: 'seen' })
    if (next.type !== 'server' || next.id !== created?.id) continue
    change = next
    break
  }
  assert.equal(change?.value?.task, 'seen')
  await created?.delete()
})

const FAULTS: readonly (readonly [string, FaultEffect])[] = [
  ['lost-response', { lose_response: true }],
  ['disconnect', { disconnect: true }],
  ['503', { error: { status: 503, retry_after: 1 } }],
]
for (const [name, effect] of FAULTS)
  test(`retry-${name}`, async () => {
    await using own = await berth.account()
    const fault = await own.fail('servers.create', effect, { times: 1 })
    const made = await own.servers.create({ task: 'once' })
    assert.deepEqual(
      (await own.servers.list()).map(({ id }) => id),
      [made.id],
    )
    assert.equal((await berth.faults.list()).find(({ id }) => id === fault.id)?.hits, 1)
  })

test('retry-429', async () => {
  await using own = await berth.account()
  await own.fail('servers.list', { error: { status: 429, retry_after: 1 } }, { times: 1 })
  const began = performance.now()
  assert.deepEqual(await own.servers.list(), [])
  assert.ok(performance.now() - began >= 990)
})

test('retry-delete', async () => {
  await using own = await berth.account()
  const made = await own.servers.create()
  await own.fail('servers.delete', { lose_response: true }, { times: 1 })
  await made.delete()
  assert.deepEqual(await own.servers.list(), [])
})

test('exec-once', async () => {
  for (const [effect, error, lines] of [
    [{ lose_response: true }, ConnectionError, 1],
    [{ disconnect: true }, ConnectionError, 0],
    [{ error: { status: 503 } }, UnavailableError, 0],
  ] satisfies [FaultEffect, typeof BerthError, number][]) {
    await server.exec('rm -f log')
    await account.fail('exec.run', effect, { times: 1 })
    await assert.rejects(server.exec('echo x >> log'), error)
    assert.equal(await linesOf('log'), lines, JSON.stringify(effect))
  }
})

test('truncated-stream', async () => {
  await account.fail('exec.run', { truncate: { bytes: 60 } }, { times: 1 })
  const command = 'for i in 1 2 3 4 5 6 7 8; do echo line $i of the output; done'
  await assert.rejects(server.exec(command, { onStdout: () => {} }), ConnectionError)
})

test('redirect', async () => {
  let requests = 0
  const thief = createServer((_, response) => {
    requests++
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(thief, 'listening')
  try {
    const { port } = thief.address() as AddressInfo
    const location = `http://127.0.0.1:${port}/servers`
    await account.fail('servers.list', { respond: { status: 307, headers: { location } } }, { times: 1 })
    await assert.rejects(account.servers.list(), (error: unknown) => {
      assert.ok(error instanceof BerthError)
      assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}`))
      return true
    })
    assert.equal(requests, 0)
  } finally {
    thief.closeAllConnections()
    thief.close()
  }
})

test('unknown-fields', async () => {
  const found = { id: server.id, status: 'melting', newer: { than: 'this client' } }
  const body = JSON.stringify({ server: found })
  await account.fail(
    'servers.get',
    { respond: { status: 200, content_type: 'application/json', body } },
    { times: 1 },
  )
  assert.equal((await account.servers.get(server.id)).status, 'melting')
})

test('proxy-page', async () => {
  await using own = await berth.account()
  const made = await own.servers.create()
  const body = '<html>Bad gateway</html>'
  await own.fail('servers.get', { respond: { status: 502, content_type: 'text/html', body } })
  const error = await own.servers.get(made.id).catch((thrown: unknown) => thrown)
  assert.ok(error instanceof BerthError && !(error instanceof InternalError))
  assert.deepEqual([error.status, error.code], [502, null])
  assert.match(error.message, /not berth's/)
})

test('account', async () => {
  const other = await berth.account({ label: 'other' })
  {
    await using alone = other
    assert.deepEqual(await alone.servers.list(), [])
    assert.notEqual((await account.servers.list()).length, 0)
  }
  await assert.rejects(other.servers.list(), AuthenticationError)
})

test('clock', async () => {
  const before = await berth.clock.read()
  const moved = await berth.clock.advance('2h')
  assert.ok(Date.parse(moved.now) - Date.parse(before.now) >= 7_200_000)
  await berth.clock.reset()
})

test('wait', async () => {
  const task = await server.tasks.create('complete: done')
  const outcome = await berth.wait({ task: task.id })
  assert.equal(outcome.task?.status, 'completed')
  await assert.rejects(
    berth.wait({ task: task.id }, { until: 'running', timeoutMs: 50 }),
    (error: unknown) => error instanceof WaitTimeoutError && error.outcome.task?.status === 'completed',
  )
})

test('scenarios', async () => {
  await berth.scenarios.add({ match: 'hold on', steps: [{ hold: true }, { complete: 'released' }] })
  const task = await server.tasks.create('hold on')
  await berth.wait({ task: task.id }, { until: 'held' })
  await berth.release(task.id)
  assert.equal((await task.wait()).result, 'released')
  await berth.scenarios.clear()
  assert.deepEqual(await berth.scenarios.list(), [])
})
