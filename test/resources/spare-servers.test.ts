import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allDataDirectoryGroups } from '../../src/compute/limits/groups.ts'
import { RunningSandboxes } from '../../src/compute/local/running.ts'
import { dataMarkerOf, serverMarkerOf } from '../../src/compute/local/server-directories.ts'
import { readProcess, sandboxdArguments } from '../../src/compute/processes.ts'
import { type KeyedInfo, type TestBerth, testBerth } from '../support/berth.ts'
import { killServer, processesOf, until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'
import { startSurvivor } from '../support/survivor.ts'

/** Milliseconds in which a spare server comes up, even if the machine is busy. */
const PATIENCE_MS = 30_000

let dataDir: string
const started: ServeProcess[] = []
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'berth-spare-'))
})
afterEach(async () => {
  for (const { child } of started.splice(0)) {
    child.kill('SIGKILL')
    await child.exited
  }
  await until(() => processesOf(dataDir).length === 0, 'no process is left', PATIENCE_MS)
  rmSync(dataDir, { recursive: true, force: true })
})

const start = (flags: Record<string, unknown> = {}): Promise<TestBerth> =>
  testBerth({ dataDir, flags: { 'spare-servers': '1', ...flags } })

const directories = (): string[] =>
  existsSync(join(dataDir, 'servers')) ? readdirSync(join(dataDir, 'servers')) : []

/** Starts what is left of a server, as its berth has noted it. */
function surviving(id: string): Bun.Subprocess {
  const marker = serverMarkerOf(dataMarkerOf(realpathSync(dataDir)), id)
  const survivor = startSurvivor(join(dataDir, 'servers', id, 'workspace'), ...sandboxdArguments(marker))
  new RunningSandboxes(dataDir).ready(id, { pids: [survivor.pid], groups: [] })
  return survivor
}

/** Waits for a server that runs and is not one of the known ones. */
async function spare(known: readonly string[] = []): Promise<string> {
  let id: string | undefined
  const isThere = (): boolean => {
    id = directories().find((name) => !known.includes(name))
    return id !== undefined && processesOf(join(dataDir, 'servers', id)).length > 0
  }
  await until(isThere, 'a spare server runs', PATIENCE_MS)
  return String(id)
}

test('a server is created from the spare one, and is as any other', async () => {
  await using berth = await start()
  const ready = await spare()
  expect((await berth.call('GET', '/servers')).body).toEqual({ servers: [] })
  expect((await berth.call('GET', `/servers/${ready}`)).status).toBe(404)
  expect((await berth.call('POST', `/servers/${ready}/exec`, { command: 'true' })).status).toBe(404)

  expect(await berth.server({ task: 'first' })).toBe(ready)
  const { server } = (await berth.call('GET', `/servers/${ready}`)).body
  expect(server).toMatchObject({ status: 'running', task: 'first', creditsUsed: 0 })
  const { stdout } = await berth.exec(ready, 'pwd; ls -A | wc -l; echo kept > file; echo "$BERTH_BASE_URL"')
  expect(stdout.split('\n').slice(1)).toEqual(['0', berth.info.base_url, ''])
  expect((await berth.call('POST', `/servers/${ready}/actions`, { action: 'restart' })).status).toBe(200)
  expect((await berth.exec(ready, 'cat file')).stdout).toBe('kept\n')

  const next = await spare([ready])
  expect(await berth.server()).toBe(next)
  expect((await berth.exec(next, 'ls -A')).stdout).toBe('')
})

test('another tier gets a server with its own limits; asked for twice, the spare one has them', async () => {
  await using berth = await start()
  const small = await spare()
  const first = await berth.server({ tier: 'large' })
  const second = await berth.server({ tier: 'large' })
  expect([first, second]).not.toContain(small)
  const large = await spare([small, first, second])
  await until(() => !directories().includes(small), 'the one of the other tier is removed', PATIENCE_MS)
  expect(await berth.server({ tier: 'large' })).toBe(large)
})

test('a creation that fails leaves the spare server to the next one', async () => {
  await using berth = await start()
  const ready = await spare()
  const fault = { match: { operation: 'servers.create' }, effect: { backend: 'fail' }, times: 1 }
  expect((await berth.control('POST', '/faults', fault)).status).toBe(201)
  expect((await berth.call('POST', '/servers')).status).toBe(502)
  expect(await berth.server()).toBe(ready)
  expect((await berth.exec(ready, 'echo works')).stdout).toBe('works\n')
})

test('one that ends by itself is not used', async () => {
  await using berth = await start()
  const ready = await spare()
  killServer(dataDir, ready)
  await until(() => !directories().includes(ready), 'it is removed', PATIENCE_MS)
  const id = await berth.server()
  expect((await berth.exec(id, 'echo works')).stdout).toBe('works\n')
})

test('a reset and a restored snapshot begin with one of their own', async () => {
  await using berth = await start()
  const first = await spare()
  expect((await berth.control('POST', '/snapshots', { name: 'empty' })).status).toBe(201)
  expect((await berth.control('POST', '/reset')).status).toBe(200)
  expect(directories()).not.toContain(first)
  const second = await spare()
  expect((await berth.control('POST', '/snapshots/empty/restore')).status).toBe(200)
  await until(() => !directories().includes(second), 'it is removed', PATIENCE_MS)
  const third = await spare([first, second])
  expect(processesOf(dataDir).every((line) => !line.includes(first) && !line.includes(second))).toBe(true)
  expect(await berth.server()).toBe(third)
})

test('a stop removes it', async () => {
  const berth = await start()
  await spare()
  await berth.stop()
  expect(directories()).toEqual([])
})

test('a run whose ids repeat has none', async () => {
  await using one = await start({ 'rng-seed': '7', freeze: '2030-01-01T00:00:00Z' })
  const id = await one.server()
  // Another one would have come with it.
  await until(async () => (await one.exec(id, 'sleep 0.2; echo x')).stdout === 'x\n', 'a while')
  expect(directories()).toEqual([id])
})

test('after kill -9 nothing of it goes on, and the next start removes the rest', async () => {
  const args = ['--port', '0', '--data', dataDir, '--spare-servers', '1']
  const first = serve(args)
  started.push(first)
  const { isolation } = await first.ready
  const left = await spare()
  const pids = processesOf(dataDir).map((line) => Number.parseInt(line, 10))
  first.child.kill('SIGKILL')
  await first.child.exited
  await until(() => pids.every((pid) => readProcess(pid) === null), 'its processes end', PATIENCE_MS)

  const survivor = isolation === 'bubblewrap' ? surviving(left) : null
  const again = serve([...args.slice(0, -1), '0'])
  started.push(again)
  const info: KeyedInfo = await again.ready
  await until(() => !directories().includes(left), 'its directory is removed', PATIENCE_MS)
  await survivor?.exited
  const groups = (): string[] => allDataDirectoryGroups().flatMap(({ groups }) => groups)
  await until(() => !groups().some((path) => path.endsWith(left)), 'its groups are removed', PATIENCE_MS)
  expect((await call(info, 'POST', '/servers')).status).toBe(201)
  again.child.kill('SIGTERM')
  expect(await again.child.exited).toBe(0)
})
