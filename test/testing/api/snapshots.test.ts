import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { makeOlder } from '../../support/older-state.ts'
import { until } from '../../support/processes.ts'
import { logged } from '../../support/projects.ts'
import { dumpTables, measuredTables, treeOf, type Used, useEverything } from '../../support/state.ts'

const workspaces = (dataDir: string) =>
  Object.fromEntries(
    Object.entries(treeOf(dataDir)).filter(([path]) => /^servers\/[^/]+\/workspace/.test(path)),
  )

describe('a snapshot of everything, restored', () => {
  let berth: TestBerth
  let used: Used
  let tables: ReturnType<typeof dumpTables>
  let files: Record<string, string>
  let log: string

  beforeAll(async () => {
    // Nothing is charged while the clock stands, so that two looks see the same.
    const flags = {
      'rng-seed': '7',
      freeze: '2030-01-01T00:00:00Z',
      'allow-local-webhooks': true,
    }
    berth = await testBerth({ flags })
    used = await useEverything(berth)
    tables = await measuredTables(berth)
    expect((await berth.control('POST', '/snapshots', { name: 'all' })).status).toBe(201)
    files = workspaces(berth.dataDir)
    log = await logged(berth, used.projectId)
    await berth.control('POST', '/clock', { advance: '40d' })
    await berth.control('POST', '/reset')
    await berth.server()
    const { status, body } = await berth.control('POST', '/snapshots/all/restore')
    expect({ status, restored: body.restored }).toEqual({ status: 200, restored: 'all' })
    await until(
      async () => (await berth.fetch('/_berth/ready')).status === 200,
      'the restored state to be up',
    )
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  test('has every row of every table', async () => {
    const now = await measuredTables(berth)
    // What ran is found as after a restart: a task that nobody works on any more has failed.
    const moving = [
      'tasks',
      'task_events',
      'events',
      'deliveries',
      'delivery_attempts',
      'inbox',
      'fan_out',
      'idempotency',
      'projects',
      'builds',
    ]
    const still = (dump: typeof now) =>
      Object.fromEntries(Object.entries(dump).filter(([name]) => !moving.includes(name)))
    expect(still(now)).toEqual(still(tables))
    for (const name of moving) {
      const ids = (dump: typeof now) =>
        (dump[name] ?? []).map(({ id, seq, task_id }) => `${id} ${task_id} ${seq}`)
      if (name !== 'fan_out') expect(ids(now)).toEqual(expect.arrayContaining(ids(tables)))
    }
    const held = now.tasks?.find(({ id }) => id === used.heldTask)
    expect(held).toMatchObject({ status: 'failed', result: 'berth ended unexpectedly while the task ran.' })
  })

  test('has every file as it was, with its mode, and no other', () => {
    expect(workspaces(berth.dataDir)).toEqual(files)
  })

  test('has every log', async () => {
    expect(await logged(berth, used.projectId)).toContain(log)
  })

  test('starts at the time at which it was taken', async () => {
    expect((await berth.control('GET', '/clock')).body).toMatchObject({
      now: '2030-01-01T00:00:00.000Z',
      frozen: true,
    })
  })

  test('runs again: servers take commands, apps answer under their addresses', async () => {
    expect((await berth.exec(used.serverId, 'cat link')).stdout).toBe('hello\n')
    expect((await berth.exec(used.serverId, 'echo $TOKEN | wc -c')).stdout.trim()).toBe('15')
    expect(await (await fetch(used.projectUrl)).text()).toBe('app')
  })
})

/** Returns a server with a program that does not end when it is asked to. */
async function stubbornServer(berth: TestBerth): Promise<string> {
  const id = await berth.server()
  await berth.exec(
    id,
    'echo kept > file; (trap "" TERM; echo x > ready; sleep 600; sleep 600) > /dev/null 2>&1 &',
  )
  await until(async () => (await berth.exec(id, 'cat ready')).exitCode === 0, 'the command to ignore SIGTERM')
  return id
}

describe('snapshots', () => {
  test('are kept under their names, listed newest first, replaced and removed', async () => {
    await using berth = await testBerth()
    const names = async () =>
      (await berth.control('GET', '/snapshots')).body.snapshots.map(({ name }: { name: string }) => name)
    expect(await names()).toEqual([])
    await berth.control('POST', '/snapshots', { name: 'a' })
    await berth.control('POST', '/snapshots', { name: 'b.2_x-y' })
    expect(await names()).toEqual(['b.2_x-y', 'a'])
    const id = await berth.server()
    const { body } = await berth.control('POST', '/snapshots', { name: 'a' })
    expect(body).toMatchObject({ name: 'a', version: berth.info.version, schema: expect.any(Number) })
    await berth.control('POST', '/reset')
    expect(await names()).toEqual(['a', 'b.2_x-y'])
    await berth.control('POST', '/snapshots/a/restore')
    expect((await berth.call('GET', `/servers/${id}`)).status).toBe(200)
    expect((await berth.control('DELETE', '/snapshots/a')).body).toEqual({ name: 'a', deleted: true })
    expect(await names()).toEqual(['b.2_x-y'])
    for (const [method, path] of [
      ['DELETE', '/snapshots/a'],
      ['POST', '/snapshots/a/restore'],
    ] as const)
      expect((await berth.control(method, path)).body.error).toBe('not_found')
    expect(readdirSync(join(berth.dataDir, 'snapshots'))).toEqual(['b.2_x-y'])
  })

  test.each(['', '.', '..', '.hidden', 'a/b', '../a', 'a b', 'x'.repeat(101), 'ä'])(
    'cannot be called %p',
    async (name) => {
      await using berth = await testBerth()
      const { status, body } = await berth.control('POST', '/snapshots', { name })
      expect({ status, error: body.error }).toEqual({ status: 400, error: 'bad_request' })
    },
  )

  test('have the files of servers, not their caches', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    await berth.exec(id, 'mkdir caches && echo mine > caches/file && echo much > "$GOCACHE.txt"')
    await berth.control('POST', '/snapshots', { name: 'a' })
    const server = join(berth.dataDir, 'snapshots/a/servers', id)
    expect(readdirSync(join(server, 'workspace/caches'))).toEqual(['file'])
    expect(readdirSync(server)).not.toContain('caches')
    await berth.control('POST', '/snapshots/a/restore')
    expect((await berth.exec(id, 'cat caches/file; cat "$GOCACHE.txt" || echo none')).stdout).toBe(
      'mine\nnone\n',
    )
  })

  test('survive a restart, and a kill while one is being made leaves none', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-snapshots-'))
    try {
      {
        await using berth = await testBerth({ dataDir })
        await berth.server()
        await berth.control('POST', '/snapshots', { name: 'kept' })
      }
      const at = (name: string) => join(dataDir, 'snapshots', name)
      cpSync(at('kept'), at('.new-half'), { recursive: true })
      cpSync(at('kept'), at('.gone-removed'), { recursive: true })
      // Killed between the two renames by which one replaces another.
      cpSync(at('kept'), at('.new-kept'), { recursive: true })
      renameSync(at('kept'), at('.old-kept'))
      await using berth = await testBerth({ dataDir })
      await until(
        () => readdirSync(join(dataDir, 'snapshots')).join() === 'kept',
        'the half ones to be removed',
      )
      const { snapshots } = (await berth.control('GET', '/snapshots')).body
      expect(snapshots.map(({ name }: { name: string }) => name)).toEqual(['kept'])
      expect((await berth.control('POST', '/snapshots/kept/restore')).status).toBe(200)
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })

  test('of a newer berth, or that cannot be read, are refused, and everything stays as it is', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    await berth.exec(id, 'echo before > file')
    for (const name of ['newer', 'newer-database', 'broken', 'damaged'])
      await berth.control('POST', '/snapshots', { name })
    const at = (...path: string[]) => join(berth.dataDir, 'snapshots', ...path)
    const said = JSON.parse(readFileSync(at('newer', 'snapshot.json'), 'utf8'))
    writeFileSync(at('newer', 'snapshot.json'), JSON.stringify({ ...said, schema: 999 }))
    const database = new Database(at('newer-database', 'berth.db'))
    database.run('PRAGMA user_version = 999')
    database.close()
    truncateSync(at('broken', 'berth.db'), 5_000)
    truncateSync(at('damaged', 'snapshot.json'), 10)

    for (const name of ['newer', 'newer-database', 'broken', 'damaged']) {
      const { status, body } = await berth.control('POST', `/snapshots/${name}/restore`)
      expect({ name, status, error: body.error }).toEqual({ name, status: 400, error: 'bad_request' })
      expect(body.message).toMatch(name.startsWith('newer') ? /newer/ : /cannot be (?:used|read)/)
    }
    expect((await berth.control('GET', '/snapshots')).body.snapshots.length).toBe(3)
    expect((await berth.control('DELETE', '/snapshots/damaged')).status).toBe(200)
    expect((await berth.exec(id, 'cat file')).stdout).toBe('before\n')
    expect(readdirSync(berth.dataDir)).not.toContain('swap')
  })

  test('of an older schema are brought up to date as they are restored', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    await berth.control('POST', '/snapshots', { name: 'old' })
    const place = join(berth.dataDir, 'snapshots/old')
    makeOlder(join(place, 'berth.db'), 7)
    const said = JSON.parse(readFileSync(join(place, 'snapshot.json'), 'utf8'))
    writeFileSync(join(place, 'snapshot.json'), JSON.stringify({ ...said, schema: 7 }))
    expect((await berth.control('POST', '/snapshots/old/restore')).status).toBe(200)
    expect((await berth.call('GET', `/servers/${id}`)).status).toBe(200)
    expect(dumpTables(berth.dataDir)).toHaveProperty('faults')
  })

  test('hold what requests under way have committed, and none is lost or half there', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    let going = true
    const writing = (async () => {
      let count = 0
      for (; going; count += 1)
        await berth.call('PUT', `/servers/${id}/files`, { path: `f${count}`, content: 'x'.repeat(10_000) })
      return count
    })()
    for (const name of ['one', 'two', 'three'])
      expect((await berth.control('POST', '/snapshots', { name })).status).toBe(201)
    going = false
    const written = await writing
    await berth.control('POST', '/snapshots/three/restore')
    const { body } = await berth.call('GET', `/servers/${id}/files`)
    expect(body.files.length).toBeGreaterThan(0)
    expect(body.files.length).toBeLessThanOrEqual(written)
    expect((await berth.exec(id, 'find . -name "f*" ! -size 10000c | wc -l')).stdout.trim()).toBe('0')
  })

  test('hold the files of one moment, whatever servers write meanwhile, and these go on', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    // The copy takes the folders in between for so long that the two files are met at different moments otherwise.
    const filler = 'for n in $(seq 40); do mkdir m$n; for k in $(seq 25); do echo x > m$n/$k; done; done'
    const count = 'n=0; while :; do n=$((n+1)); echo $n > a; echo $n > z; done'
    await berth.exec(id, `${filler}; echo 0 > a; echo 0 > z; (${count}) > /dev/null 2>&1 &`)
    for (let round = 0; round < 4; round += 1) {
      expect((await berth.control('POST', '/snapshots', { name: 'moment' })).status).toBe(201)
      const workspace = join(berth.dataDir, 'snapshots/moment/servers', id, 'workspace')
      const [a, z] = ['a', 'z'].map((name) => Number(readFileSync(join(workspace, name), 'utf8')))
      // An empty file reads as 0: its writer was stopped between opening and writing.
      const apart = (a ?? 0) - (z ?? 0)
      if (a !== 0 && z !== 0) expect({ apart, ok: apart === 0 || apart === 1 }).toMatchObject({ ok: true })
    }
    const now = async () => Number((await berth.exec(id, 'cat z')).stdout)
    const before = await now()
    await until(async () => (await now()) > before, 'the command to go on')
  })

  test('hold the files of one moment of a server that wakes meanwhile', async () => {
    await using berth = await testBerth()
    const id = await berth.server()
    const filler = 'for n in $(seq 60); do mkdir m$n; for k in $(seq 50); do echo x > m$n/$k; done; done'
    await berth.exec(id, `${filler}; echo 0 > a; echo 0 > z`)
    const count = 'n=$(cat a); while :; do n=$((n+1)); echo $n > a; echo $n > z; done'
    for (let round = 0; round < 5; round += 1) {
      await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
      const counting = berth.call('POST', `/servers/${id}/exec`, { command: count })
      await Bun.sleep(4 * round)
      expect((await berth.control('POST', '/snapshots', { name: 'moment' })).status).toBe(201)
      const workspace = join(berth.dataDir, 'snapshots/moment/servers', id, 'workspace')
      const [a, z] = ['a', 'z'].map((name) => Number(readFileSync(join(workspace, name), 'utf8')))
      const apart = (a ?? 0) - (z ?? 0)
      if (a !== 0 && z !== 0) expect({ apart, ok: apart === 0 || apart === 1 }).toMatchObject({ ok: true })
      await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
      await counting
    }
  })

  test('let requests in while they wait for a server to stop', async () => {
    await using berth = await testBerth()
    const id = await stubbornServer(berth)
    const stop = berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
    const isStopping = async () =>
      (await berth.call('GET', `/servers/${id}`)).body.server.status === 'sleeping'
    await until(isStopping, 'the stop to be under way')
    let isSaved = false
    const saving = berth.control('POST', '/snapshots', { name: 'later' }).finally(() => {
      isSaved = true
    })
    for (let request = 0; request < 10; request += 1)
      expect((await berth.call('GET', '/servers')).status).toBe(200)
    expect(isSaved).toBe(false)
    expect((await saving).status).toBe(201)
    expect((await stop).status).toBe(200)
  })

  test('hold every server whole that they hold, whatever is deleted meanwhile', async () => {
    await using berth = await testBerth()
    const servers = [await stubbornServer(berth), await stubbornServer(berth)]
    const large = await berth.server()
    await berth.exec(
      large,
      'for n in $(seq 300); do mkdir m$n; for k in $(seq 50); do echo x > m$n/$k; done; done',
    )
    servers.push(await stubbornServer(berth), await stubbornServer(berth))
    // A deletion waits for the stop before, which takes a second.
    const ends = servers.flatMap((id) => [
      berth.call('POST', `/servers/${id}/actions`, { action: 'stop' }),
      berth.call('DELETE', `/servers/${id}`),
    ])
    let areDeleted = false
    const deleted = Promise.all(ends).then((all) => {
      areDeleted = true
      return all.map(({ status }) => status)
    })
    const names: string[] = []
    while (!areDeleted) {
      names.push(`amid-${names.length}`)
      expect((await berth.control('POST', '/snapshots', { name: names.at(-1) })).status).toBe(201)
    }
    expect(await deleted).toEqual(Array(8).fill(200))
    for (const name of names) {
      expect((await berth.control('POST', `/snapshots/${name}/restore`)).status).toBe(200)
      const ids = (await berth.call('GET', '/servers')).body.servers.map(({ id }: { id: string }) => id)
      expect(ids).toContain(large)
      for (const id of servers.filter((one) => ids.includes(one)))
        expect((await berth.exec(id, 'cat file')).stdout).toBe('kept\n')
    }
  })
})

describe('GET /_berth/snapshots/{name}/diff', () => {
  test('counts what was added, removed and changed, by kind and by file, between snapshots and now', async () => {
    await using berth = await testBerth({ flags: { isolation: 'none' } })
    const kept = await berth.server({ task: 'kept' })
    const gone = await berth.server({ task: 'gone' })
    const write = (path: string, content: string) =>
      berth.call('PUT', `/servers/${kept}/files`, { path, content })
    await write('same.txt', 'same')
    await write('changed.txt', 'one')
    await write('removed.txt', 'x')
    await berth.control('POST', '/snapshots', { name: 'before' })
    const diff = async (query = '') => (await berth.control('GET', `/snapshots/before/diff${query}`)).body
    expect(await diff()).toEqual({ from: 'before', to: null, kinds: [], files: [] })

    await berth.call('PATCH', `/servers/${kept}`, { task: 'renamed' })
    await berth.call('DELETE', `/servers/${gone}`)
    await berth.call('PUT', '/secrets', { server_id: kept, secrets: { TOKEN: 'never shown' } })
    await write('deep/added.txt', 'new')
    await write('changed.txt', 'two, longer')
    await berth.call('DELETE', `/servers/${kept}/files?path=removed.txt`)
    const now = await diff()
    expect(JSON.stringify(now)).not.toContain('never shown')
    const kinds = Object.fromEntries(now.kinds.map((kind: { kind: string }) => [kind.kind, kind]))
    expect(kinds.servers).toEqual({
      kind: 'servers',
      ...{ added: 0, removed: 1, changed: 1 },
      items: [
        { change: 'changed', id: kept, name: 'renamed', fields: ['task'] },
        { change: 'removed', id: gone, name: 'gone', fields: [] },
      ],
    })
    expect(kinds.secrets).toMatchObject({ added: 1, items: [{ change: 'added', name: 'TOKEN' }] })
    expect(now.files).toEqual([
      {
        server_id: kept,
        ...{ added: 1, removed: 1, changed: 1 },
        files: [
          { change: 'changed', path: 'changed.txt' },
          { change: 'added', path: 'deep/added.txt' },
          { change: 'removed', path: 'removed.txt' },
        ],
        is_complete: true,
      },
    ])

    await berth.control('POST', '/snapshots', { name: 'after' })
    expect(await diff('?to=after')).toEqual({ ...now, to: 'after' })
    expect((await berth.control('GET', '/snapshots/none/diff')).status).toBe(404)
    expect((await berth.control('GET', '/snapshots/before/diff?to=..')).status).toBe(404)
    expect(readdirSync(join(berth.dataDir, 'snapshots')).sort()).toEqual(['after', 'before'])
  })
})

test('a reset and a restore save the state before only if asked to, and a restore brings what servers may reach', async () => {
  await using berth = await testBerth()
  const names = async () =>
    (await berth.control('GET', '/snapshots')).body.snapshots.map(({ name }: { name: string }) => name).sort()
  const id = await berth.server()
  const hosts = ['example.com:443']
  await berth.control('PATCH', `/servers/${id}/network`, { outbound: 'list', hosts })
  await berth.control('POST', '/snapshots', { name: 'listed' })
  expect((await berth.control('POST', '/reset')).body).not.toHaveProperty('undo')
  expect((await berth.control('POST', '/reset', {})).body).not.toHaveProperty('undo')
  const rules = [{ server_id: id, outbound: 'list', hosts }]
  const plain = await berth.control('POST', '/snapshots/listed/restore', { undo: false })
  expect(plain.body).toEqual({ restored: 'listed', took_ms: expect.any(Number), outbound_rules: rules })
  expect(await names()).toEqual(['listed'])

  expect((await berth.control('POST', '/reset', { undo: true })).body.undo).toBe('before-reset')
  const restored = await berth.control('POST', '/snapshots/listed/restore', { undo: true })
  expect(restored.body).toMatchObject({ undo: 'before-restore', outbound_rules: rules })
  expect(await names()).toEqual(['before-reset', 'before-restore', 'listed'])
  const empty = await berth.control('POST', '/snapshots/before-restore/restore')
  expect(empty.body.outbound_rules).toEqual([])
  expect((await berth.call('GET', '/servers')).body.servers).toEqual([])

  expect((await berth.control('POST', '/snapshots/none/restore', { undo: true })).status).toBe(404)
  expect((await berth.control('POST', '/snapshots/listed/restore', { undo: 1 })).status).toBe(400)
  expect(await names()).toEqual(['before-reset', 'before-restore', 'listed'])
})
