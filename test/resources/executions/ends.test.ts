import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { call, serve } from '../../support/serve.ts'
import { detach, ended, readAll } from './detached.ts'

setDefaultTimeout(60_000)

const list = async (berth: TestBerth, server: string) =>
  (await berth.call('GET', `/servers/${server}/executions`)).body.executions as {
    id: string
    status: string
  }[]

const printedOn = (stream: string, output: { stream: string; data: string }[]) =>
  output.flatMap((entry) => (entry.stream === stream ? [entry.data] : [])).join('')

test('a timeout, an idle hour, the stop of the server and its crash end an execution, and say so', async () => {
  await using berth = await testBerth()
  const [server, stopped, crashed] = [await berth.server(), await berth.server(), await berth.server()]
  const timed = await detach(berth, server, 'sleep 300', { timeoutMs: 50 })
  expect(await ended(berth, timed)).toMatchObject({ status: 'ended', exitCode: null, timedOut: true })
  const others = [
    await detach(berth, stopped, 'sleep 300'),
    await detach(berth, crashed, 'sleep 300'),
  ] as const
  await berth.call('POST', `/servers/${stopped}/actions`, { action: 'stop' })
  await berth.control('POST', `/servers/${crashed}/fault`, { kind: 'crash' })
  for (const other of others)
    expect(await ended(berth, other)).toMatchObject({ status: 'ended', exitCode: null, timedOut: false })
  const idle = await detach(berth, server, 'echo begun; sleep 300')
  await until(async () => (await readAll(berth, idle)).stdout !== '', 'its output')
  await berth.control('POST', '/clock', { advance: '59m' })
  expect((await berth.call('GET', idle.path)).body.execution.status).toBe('running')
  // The look was a use.
  await berth.call('GET', idle.output)
  await berth.control('POST', '/clock', { advance: '59m' })
  expect((await berth.call('GET', idle.path)).body.execution.status).toBe('running')
  await berth.control('POST', '/clock', { advance: '2m' })
  expect(await ended(berth, idle)).toMatchObject({ status: 'ended', timedOut: false })
})

test('with --execution-idle another time counts, a reader keeps an execution, and 0 is never', async () => {
  await using berth = await testBerth({ flags: { 'execution-idle': '5m' } })
  const server = await berth.server()
  const [idle, read] = [await detach(berth, server, 'sleep 300'), await detach(berth, server, 'sleep 300')]
  const reader = new AbortController()
  const headers = { accept: 'text/event-stream' }
  await berth.fetch(read.output, { headers, signal: reader.signal })
  await berth.control('POST', '/clock', { advance: '6m' })
  expect((await ended(berth, idle)).status).toBe('ended')
  await berth.control('POST', '/clock', { advance: '6m' })
  expect((await berth.call('GET', read.path)).body.execution.status).toBe('running')
  reader.abort()
  await berth.call('DELETE', read.path)
  await using never = await testBerth({ flags: { 'execution-idle': '0' } })
  const lasting = await detach(never, await never.server(), 'sleep 300')
  await never.control('POST', '/clock', { advance: '1000h' })
  expect((await never.call('GET', lasting.path)).body.execution.status).toBe('running')
})

test('the budget cap ends the executions of an account, and no new one begins', async () => {
  await using berth = await testBerth()
  const { api_key: key, id } = (await berth.control('POST', '/accounts', { budget_cap: 1 })).body
  const headers = { authorization: `Bearer ${key}` }
  const server = (await berth.call('POST', '/servers', {}, headers)).body.id
  const path = `/servers/${server}/exec`
  const begun = await berth.call('POST', path, { command: 'sleep 300', detach: true }, headers)
  expect(begun.status).toBe(202)
  await berth.control('PATCH', `/accounts/${id}`, { credits_used: 1 })
  const execution = { id: begun.body.execution.id, path: '', output: '' }
  expect((await ended(berth, execution)).status).toBe('ended')
  expect((await berth.call('POST', path, { command: 'true', detach: true }, headers)).status).toBe(402)
})

test('20 run on a server at a time, ended ones go after 10 minutes or beyond 100', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  const running = []
  for (let n = 0; n < 20; n++) running.push(await detach(berth, server, 'sleep 300'))
  const more = await berth.call('POST', `/servers/${server}/exec`, { command: 'true', detach: true })
  expect([more.status, more.body.error]).toEqual([403, 'plan_limit'])
  // Another server has its own, and commands that are waited for do not count.
  expect((await berth.exec(server, 'echo here')).stdout).toBe('here\n')
  await detach(berth, await berth.server(), 'true')
  for (const one of running) await berth.call('DELETE', one.path)
  for (let n = 0; n < 85; n++) await ended(berth, await detach(berth, server, 'echo x'))
  const kept = await list(berth, server)
  expect(kept.length).toBe(100)
  expect(kept.map(({ id }) => id)).not.toContain(running[0]?.id)
  const folder = join(berth.dataDir, 'executions', server)
  expect(readdirSync(folder).length).toBe(100)
  await berth.control('POST', '/clock', { advance: '9m' })
  expect((await list(berth, server)).length).toBe(100)
  await berth.control('POST', '/clock', { advance: '2m' })
  expect(await list(berth, server)).toEqual([])
  expect(readdirSync(folder)).toEqual([])
})

test('those that ran when berth was killed are ended at its next start, with their output', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-executions-'))
  try {
    const before = serve(['--port', '0', '--data', folder])
    const info = await before.ready
    const server = (await call(info, 'POST', '/servers', {})).body.id
    const start = async (command: string) =>
      (await call(info, 'POST', `/servers/${server}/exec`, { command, detach: true })).body.execution.id
    const id = await start('seq 1 300000; echo err >&2; sleep 300')
    const path = `/servers/${server}/executions/${id}`
    await until(async () => {
      const { execution } = (await call(info, 'GET', path)).body
      return execution.stderrBytes === 4 && execution.stdoutBytes === 1_988_895
    }, 'its output')
    const { output, dropped } = (await call(info, 'GET', `${path}/output?limit=2000`)).body
    before.child.kill('SIGKILL')
    await before.child.exited
    const after = serve(['--port', '0', '--data', folder])
    const again = await after.ready
    const { execution } = (await call(again, 'GET', path)).body
    expect(execution).toMatchObject({
      status: 'ended',
      exitCode: null,
      stdoutBytes: 1_988_895,
      stderrBytes: 4,
    })
    expect(execution.endedAt).not.toBeNull()
    const kept = (await call(again, 'GET', `${path}/output?limit=2000`)).body
    // In which order the streams took turns is not known any more.
    for (const stream of ['stdout', 'stderr'])
      expect(printedOn(stream, kept.output) === printedOn(stream, output)).toBe(true)
    expect(kept.dropped).toEqual(dropped)
    after.child.kill('SIGTERM')
    await after.child.exited
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a reset and a restore end executions; their output is in no snapshot, and goes with the record', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  const [old, running] = [await detach(berth, server, 'echo old'), await detach(berth, server, 'sleep 300')]
  await ended(berth, old)
  await berth.control('POST', '/snapshots', { name: 'kept' })
  const snapshot = join(berth.dataDir, 'snapshots', 'kept')
  expect(readdirSync(snapshot)).not.toContain('executions')
  await berth.control('POST', '/snapshots/kept/restore')
  expect(await list(berth, server)).toMatchObject([{ id: running.id, status: 'ended' }, { id: old.id }])
  expect((await readAll(berth, old)).stdout).toBe('old\n')
  await berth.control('POST', '/reset')
  const folder = join(berth.dataDir, 'executions')
  expect(
    existsSync(folder) ? readdirSync(folder).flatMap((name) => readdirSync(join(folder, name))) : [],
  ).toEqual([])
  // The restored records have no output any more.
  await berth.control('POST', '/snapshots/kept/restore')
  expect(await list(berth, server)).toEqual([])
})

test('output counts as storage of its server, and goes with it', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  const storage = async () => (await berth.call('GET', `/servers/${server}/usage`)).body.usage.storage_bytes
  const before = await storage()
  const execution = await detach(berth, server, 'head -c 900000 /dev/zero')
  await ended(berth, execution)
  await until(async () => (await storage()) >= before + 900_000, 'the storage to grow')
  await berth.call('DELETE', execution.path)
  await until(async () => (await storage()) < before + 900_000, 'the storage to shrink')
  await ended(berth, await detach(berth, server, 'echo x'))
  await berth.call('DELETE', `/servers/${server}`)
  expect(existsSync(join(berth.dataDir, 'executions', server))).toBe(false)
})

test('an execution keeps its server awake by output and input, not by running', async () => {
  await using berth = await testBerth({ flags: { 'idle-timeout': '10m' } })
  const server = await berth.server()
  const status = async () => (await berth.call('GET', `/servers/${server}`)).body.server.status
  const execution = await detach(berth, server, 'cat', { openStdin: true })
  await berth.control('POST', '/clock', { advance: '9m' })
  await berth.call('POST', `${execution.path}/input`, { text: 'x' })
  await until(async () => (await readAll(berth, execution)).stdout === 'x', 'its output')
  await berth.control('POST', '/clock', { advance: '9m' })
  expect(await status()).toBe('running')
  await berth.control('POST', '/clock', { advance: '2m' })
  await until(async () => (await status()) === 'sleeping', 'the server to sleep')
  expect((await ended(berth, execution)).status).toBe('ended')
})

test('a follower whose key ends is notified, and output without end keeps berth responsive', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  const execution = await detach(berth, server, 'yes')
  const begun = performance.now()
  for (let n = 0; n < 20; n++) await berth.call('GET', '/templates')
  expect(performance.now() - begun).toBeLessThan(5_000)
  await berth.call('DELETE', execution.path)
  const quiet = await detach(berth, server, 'sleep 300')
  const key = (await berth.call('POST', '/keys', { label: 'reader' })).body
  const headers = { authorization: `Bearer ${key.key}` }
  const following = berth.call('GET', `${quiet.output}?follow=true`, undefined, headers)
  await berth.call('DELETE', `/keys/${key.id}`)
  expect((await following).status).toBe(401)
})
