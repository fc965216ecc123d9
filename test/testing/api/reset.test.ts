import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { processesOf, until } from '../../support/processes.ts'
import { dumpTables, measuredTables, treeOf, type Used, useEverything } from '../../support/state.ts'
import { TaskCalls } from '../../support/tasks.ts'

/** Where ids, keys and times repeat, two states can be compared byte by byte. */
const REPEATABLE = { 'rng-seed': '7', freeze: '2030-01-01T00:00:00Z' }

/** What may stand in a data folder. An addition is named here, and in storage/state.ts. */
const STATE = ['berth.db', 'berth.db-shm', 'berth.db-wal', 'logs', 'servers']
const BESIDE = [
  '.gitignore',
  'credentials.json',
  'executions',
  'instance.json',
  'lock',
  'lock-wal',
  'lock-shm',
  'master.key',
  'packages',
  'port',
  'running',
  'sandbox',
  'sessions.db',
  'snapshots',
  'swap',
  'version',
]

/** The files of the state, without the database's, which hold the same in another order of pages. */
const filesOf = (dataDir: string) =>
  Object.fromEntries(
    Object.entries(treeOf(dataDir)).filter(([path]) => /^(?:servers|logs|executions)/.test(path)),
  )

describe('a reset after everything was used', () => {
  let folder: string
  let berth: TestBerth
  let started: ReturnType<typeof dumpTables>
  let filesAtStart: Record<string, string>
  let timersAtStart: number
  let processesAtStart: number
  let used: Used
  let usedTables: ReturnType<typeof dumpTables>
  let usedEntries: string[]

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'berth-reset-'))
    const fixtures = join(folder, 'fixtures.json')
    writeFileSync(fixtures, JSON.stringify({ servers: { given: { files: { 'a.txt': 'as given' } } } }))
    const flags = {
      ...REPEATABLE,
      fixtures: [fixtures],
      'allow-local-webhooks': true,
    }
    berth = await testBerth({ flags })
    started = await measuredTables(berth)
    filesAtStart = filesOf(berth.dataDir)
    timersAtStart = (await berth.control('GET', '/clock')).body.timers
    processesAtStart = processesOf(berth.dataDir).length
    used = await useEverything(berth)
    await berth.control('POST', '/clock', { advance: '3d' })
    // One of before would have been forgotten in these days.
    const left = { command: 'echo printed; sleep 300', detach: true }
    await berth.call('POST', `/servers/${await berth.server()}/exec`, left)
    usedTables = dumpTables(berth.dataDir)
    usedEntries = readdirSync(berth.dataDir)
    const { status, body } = await berth.control('POST', '/reset')
    expect({ status, reset: body.reset }).toEqual({ status: 200, reset: true })
  })
  afterAll(async () => {
    await berth?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  test('there was a row in every table before: none is left out of what is tried here', () => {
    const empty = Object.entries(usedTables).flatMap(([name, rows]) => (rows.length === 0 ? [name] : []))
    // Rows are there only until the pushed version responds, or the files of a deleted server are removed.
    expect(empty).toEqual(['deleted_servers', 'unfinished_pushes'])
  })

  test('there was nothing in the data folder of which nobody has said what it is', () => {
    expect(usedEntries.filter((name) => !STATE.includes(name) && !BESIDE.includes(name))).toEqual([])
  })

  test('every table holds what it held when berth had just started', async () => {
    expect(await measuredTables(berth)).toEqual(started)
  })

  test('every file is what it was, and none is left over', () => {
    expect(filesOf(berth.dataDir)).toEqual(filesAtStart)
  })

  test('no process, timer or port of before is left', async () => {
    expect(processesOf(berth.dataDir).length).toBe(processesAtStart)
    const clock = (await berth.control('GET', '/clock')).body
    expect(clock).toMatchObject({ timers: timersAtStart, now: '2030-01-01T00:00:00.000Z', frozen: true })
    expect(fetch(used.projectUrl)).rejects.toThrow()
  })

  test('the first key is valid, and nothing of before can be reached with it', async () => {
    expect((await berth.call('GET', `/servers/${used.serverId}`)).status).toBe(404)
    expect((await berth.call('GET', `/projects/${used.projectId}`)).status).toBe(404)
    expect((await berth.call('GET', '/keys')).body.keys.length).toBe(1)
    expect((await berth.control('GET', '/accounts')).body.accounts.length).toBe(1)
    expect((await berth.control('GET', '/requests')).body.requests.length).toBeLessThan(5)
  })

  test('the same requests are answered as after a start', async () => {
    const first = await berth.call('POST', '/servers')
    await berth.control('POST', '/reset')
    expect((await berth.call('POST', '/servers')).body).toEqual(first.body)
  })
})

describe('without a seed', () => {
  test('the first account and its first key keep their ids', async () => {
    await using berth = await testBerth()
    const ids = async () => [
      (await berth.control('GET', '/accounts')).body.accounts[0].id,
      (await berth.call('GET', '/keys')).body.keys[0].id,
    ]
    const before = await ids()
    await berth.control('POST', '/accounts')
    await berth.control('POST', '/reset')
    expect(await ids()).toEqual(before)
    // Deleted, it is valid again after a reset, and the account is the same.
    await berth.call('POST', '/keys', { label: 'another' })
    expect((await berth.call('DELETE', `/keys/${before[1]}`)).status).toBe(200)
    expect((await berth.call('GET', '/keys')).status).toBe(401)
    await berth.control('POST', '/reset')
    expect((await ids())[0]).toBe(before[0])
  })

  test('requests that come meanwhile wait, and are answered from the new state', async () => {
    await using berth = await testBerth()
    await Promise.all([1, 2, 3, 4].map(() => berth.server()))
    const resetting = berth.control('POST', '/reset')
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const { status, body } = await berth.call('GET', '/servers')
        return `${status} ${body.servers?.length}`
      }),
    )
    expect((await resetting).status).toBe(200)
    // Those that came before it saw the old state, whole.
    expect(new Set(answers).isSubsetOf(new Set(['200 4', '200 0']))).toBe(true)
    expect((await berth.call('GET', '/servers')).body.servers).toEqual([])
  })

  test('servers that are being created get 503 with the advice to try again, or are part of the old state', async () => {
    await using berth = await testBerth()
    await berth.server()
    const statuses = new Set<number>()
    for (let round = 0; round < 4; round += 1) {
      const creating = Array.from({ length: 6 }, () => berth.call('POST', '/servers'))
      const resetting = berth.control('POST', '/reset')
      for (const { status, body } of await Promise.all(creating)) {
        statuses.add(status)
        if (status === 503) expect(body.error).toBe('service_unavailable')
      }
      await resetting
    }
    expect(statuses.isSubsetOf(new Set([201, 503]))).toBe(true)
    expect(berth.log()).not.toContain('a sandbox did not start')
  })

  test('a command and a stream under way end, and their callers get an answer', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    const running = berth.call('POST', `/servers/${id}/exec`, { command: 'echo on >&2; sleep 1000' })
    const tasks = new TaskCalls(berth, id)
    const task = await tasks.begin('ask: who?')
    const followed = await tasks.follow(task)
    const rest = followed.rest()
    const events = await fetch(`${berth.info.base_url}/_berth/events?follow=true`, {
      headers: { authorization: `Bearer ${berth.info.admin_token}` },
    })
    await berth.control('POST', '/reset')
    expect([200, 404, 502]).toContain((await running).status)
    await rest
    await events.text()
  })

  test('a stop does not wait for what the fixtures of a reset still bring up', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-fixtures-'))
    using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
    const manifest = join(folder, 'berth.json')
    const start = (command: string) => writeFileSync(manifest, JSON.stringify({ start: command }))
    start('exec python3 -m http.server "$PORT"')
    const fixtures = join(folder, 'fixtures.yaml')
    const projects = { app: { server: 'one', files: { 'berth.json': { from: './berth.json' } } } }
    writeFileSync(fixtures, JSON.stringify({ servers: { one: {} }, projects }))
    await using berth = await testBerth({ flags: { fixtures: [fixtures] } })
    start('sleep 1000')
    const resetting = berth.control('POST', '/reset').catch(() => null)
    await until(
      async () => (await berth.call('GET', '/projects')).body.projects?.[0]?.init_phase === 'healthcheck',
      'the reset to bring up the app',
    )
    const begun = performance.now()
    await berth.stop()
    await resetting
    expect(performance.now() - begun).toBeLessThan(30_000)
  })

  test('resets that come together follow one another', async () => {
    await using berth = await testBerth()
    await berth.server()
    const answers = await Promise.all([1, 2, 3].map(() => berth.control('POST', '/reset')))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await berth.call('POST', '/servers')).status).toBe(201)
  })
})
