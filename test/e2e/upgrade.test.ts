import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { SCHEMA } from '../../src/storage/migrate.ts'
import { run, type Served, serve, temporaryFolder } from '../cli/command.ts'
import { isLocalCompute } from '../support/compute.ts'
import { makeOlder } from '../support/older-state.ts'
import { serve as serveProcess } from '../support/serve.ts'

const ended = async ({ child }: Served): Promise<void> => {
  child.kill('SIGTERM')
  await child.exited
}

/** A directory with a server and a file, as berth 0.0.9 with the schema before this one left it. */
async function olderDirectory(cwd: string): Promise<string> {
  const berth = await serve([], { cwd })
  const id = await berth.server()
  await berth.run(['files', 'write', 'note.txt'], { stdin: Buffer.from('kept') })
  await ended(berth)
  const data = join(cwd, '.berth')
  makeOlder(join(data, 'berth.db'), SCHEMA - 1)
  writeFileSync(join(data, 'version'), '0.0.9\n')
  return id
}

const { version } = JSON.parse(readFileSync(join(import.meta.dir, '../../package.json'), 'utf8'))
const snapshot = `before-upgrade-0.0.9-s${SCHEMA - 1}-to-${version}-s${SCHEMA}`

test('a newer berth saves the state of an older one before it changes it, and says so in one line', async () => {
  using folder = temporaryFolder()
  const id = await olderDirectory(folder.path)
  const upgraded = serveProcess(['--port', '0', '--data', join(folder.path, '.berth')])
  await upgraded.ready
  upgraded.child.kill('SIGTERM')
  expect((await upgraded.stderr).match(/the state of berth .*/g)).toEqual([
    expect.stringContaining(
      `the state of berth 0.0.9 was saved as the snapshot ${snapshot} before berth ${version} changed it`,
    ),
  ])
  const berth = await serve([], { cwd: folder.path })
  expect((await berth.run(['servers', '-q'])).stdout).toBe(`${id}\n`)
  const [saved] = JSON.parse((await berth.run(['snapshot', '--json'])).stdout).snapshots
  expect(saved).toMatchObject({ name: snapshot, version: '0.0.9', schema: SCHEMA - 1 })
  // It can be restored: its schema is changed then.
  await berth.run(['servers', 'delete', id])
  await berth.run(['snapshot', 'restore', snapshot, '--no-undo'])
  expect((await berth.run(['files', 'read', 'note.txt'])).stdout).toBe('kept')
  await ended(berth)
  expect(readFileSync(join(folder.path, '.berth/version'), 'utf8')).toBe(`${version}\n`)
  // Nothing is saved where nothing changes.
  const again = await serve([], { cwd: folder.path })
  expect((await again.run(['snapshot', '-q'])).stdout).toBe(`${snapshot}\n`)
  await ended(again)
})

test('a snapshot before an upgrade replaces no other, and an older berth names the newest that it can read', async () => {
  using folder = temporaryFolder()
  await olderDirectory(folder.path)
  const data = join(folder.path, '.berth')
  const snapshots = join(data, 'snapshots')
  await ended(await serve([], { cwd: folder.path }))
  // The state of 0.0.9 comes back, and is brought up to date once more.
  makeOlder(join(data, 'berth.db'), SCHEMA - 1)
  writeFileSync(join(data, 'version'), '0.0.9\n')
  await ended(await serve([], { cwd: folder.path }))
  expect(readdirSync(snapshots).sort()).toEqual([snapshot, `${snapshot}-2`])

  const refusal = async (): Promise<string> => {
    {
      using database = new Database(join(data, 'berth.db'))
      database.run('PRAGMA user_version = 999')
    }
    writeFileSync(join(data, 'version'), '9.9.9\n')
    return (await run(['serve', '--port', '0'], { cwd: folder.path })).stderr
  }
  expect(await refusal()).toContain(`is in the snapshot ${snapshot}-2: copy`)
  // Names as berth gave them until 0.1.0.
  const former = `before-upgrade-0.0.9-schema${SCHEMA - 1}-${version}`
  for (const name of [snapshot, `${snapshot}-2`]) rmSync(join(snapshots, name), { recursive: true })
  makeOlder(join(data, 'berth.db'), SCHEMA - 1)
  writeFileSync(join(data, 'version'), '0.0.9\n')
  await ended(await serve([], { cwd: folder.path }))
  renameSync(join(snapshots, snapshot), join(snapshots, former))
  const file = join(snapshots, former, 'snapshot.json')
  writeFileSync(file, readFileSync(file, 'utf8').replace(snapshot, former))
  expect(await refusal()).toContain(`is in the snapshot ${former}: copy`)
})

test('an older berth refuses the state of a newer one, with both versions and the way back', async () => {
  using folder = temporaryFolder()
  const id = await olderDirectory(folder.path)
  await ended(await serve([], { cwd: folder.path }))
  const data = join(folder.path, '.berth')
  {
    using database = new Database(join(data, 'berth.db'))
    database.run('PRAGMA user_version = 999')
  }
  writeFileSync(join(data, 'version'), '9.9.9\n')
  const { exitCode, stderr } = await run(['serve', '--port', '0'], { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr).toContain('was written by the newer berth 9.9.9 (schema 999)')
  expect(stderr).toContain(`this is berth ${version} (schema ${SCHEMA})`)
  expect(stderr).toContain(`copy ${data}/snapshots/${snapshot}`)
  // The way back that it names.
  const copy = join(folder.path, 'copy')
  mkdirSync(copy)
  cpSync(join(data, 'snapshots', snapshot), copy, { recursive: true })
  for (const name of ['master.key', 'credentials.json'])
    if (existsSync(join(data, name))) cpSync(join(data, name), join(copy, name))
  const back = await serve(['--data', copy], { cwd: folder.path })
  expect((await back.run(['servers', '-q', '--data', copy])).stdout).toBe(`${id}\n`)
  await ended(back)
})

if (!isLocalCompute)
  console.error('SKIP the data of a release before: its servers are processes of this machine')

/** The data directory that the executable of an earlier version has left, with keys of its own. */
const RECORDED = {
  archive: join(import.meta.dir, '../../fixtures/upgrade/0.1.0-s18.tar.gz'),
  before: `before-upgrade-0.1.0-s18-to-${version}-s${SCHEMA}`,
  firstKey: 'sk_live_OwyPgAeWjHoWL8iQ1YLkhdIDoVUNpTBM2NOS9dYyjAw',
  secondKey: 'sk_live_Kt2aFc1FYsA5XZ0z55ZyOiVzYfzbljAPCjXqT1yxJEa',
}

function unpack(data: string): void {
  mkdirSync(data, { recursive: true })
  const untar = Bun.spawnSync(['tar', '--no-same-owner', '-xzf', RECORDED.archive, '-C', data])
  expect(untar.exitCode).toBe(0)
}

test.skipIf(isLocalCompute)(
  'on an engine, servers of this machine are saved before an upgrade, and say where they can be used',
  async () => {
    using folder = temporaryFolder()
    const data = join(folder.path, '.berth')
    unpack(data)
    const berth = await serve([], { cwd: folder.path })
    const files = join(data, 'snapshots', RECORDED.before, 'servers')
    const [server = ''] = readdirSync(files)
    expect(existsSync(join(files, server, 'workspace/notes/hello.txt'))).toBe(true)
    expect((await berth.run(['exec', 'demo', 'true'])).stderr).toContain(`berth servers move ${server} --to`)
    await ended(berth)
  },
)

test.skipIf(!isLocalCompute)(
  'the data that a release before has left is there after an upgrade: files, variables, keys, webhooks, apps, snapshots',
  async () => {
    using folder = temporaryFolder()
    const data = join(folder.path, '.berth')
    unpack(data)
    const berth = await serve([], { cwd: folder.path })
    const list = async (noun: string) => JSON.parse((await berth.run([noun, 'list', '--json'])).stdout)
    expect(
      (await berth.run(['exec', 'demo', 'cat notes/hello.txt made.txt deep/er/file; echo $TOKEN'])).stdout,
    ).toBe('kept\nx\ny\nof-a-release-before\n')
    expect(berth.info.api_key).toBe(RECORDED.firstKey)
    for (const key of [RECORDED.firstKey, RECORDED.secondKey]) {
      const headers = { authorization: `Bearer ${key}` }
      expect((await fetch(`${berth.info.base_url}/servers`, { headers })).status).toBe(200)
    }
    expect((await list('webhooks')).webhooks).toMatchObject([{ url: 'http://127.0.0.1:9/hook' }])
    expect((await list('tasks')).tasks).toMatchObject([{ status: 'completed', result: 'Done: ran ls.' }])
    const { projects } = await list('projects')
    expect(projects).toMatchObject([{ name: 'site', runtime_status: 'running' }])
    expect(await (await fetch(projects[0].url)).text()).toBe('<h1>Of a release before</h1>\n')
    // Its own snapshot has the older schema, too, and is brought up to date when it is restored.
    await berth.run(['servers', 'delete', 'demo', '--yes'])
    await berth.run(['snapshot', 'restore', 'mine2', '--no-undo', '--yes'])
    expect((await berth.run(['files', 'read', 'demo', 'notes/hello.txt'])).stdout).toBe('kept\n')
    await ended(berth)

    const snapshots = join(data, 'snapshots')
    const saved = (name: string) => JSON.parse(readFileSync(join(snapshots, name, 'snapshot.json'), 'utf8'))
    expect(saved(RECORDED.before)).toMatchObject({ version: '0.1.0', schema: 18 })
    // The older state comes back, and is brought up to date once more.
    const first = readFileSync(join(snapshots, RECORDED.before, 'berth.db'))
    for (const name of ['berth.db', 'berth.db-wal', 'berth.db-shm']) rmSync(join(data, name), { force: true })
    unpack(data)
    await ended(await serve([], { cwd: folder.path }))
    expect(readFileSync(join(snapshots, RECORDED.before, 'berth.db')).equals(first)).toBe(true)
    expect(saved(`${RECORDED.before}-2`)).toMatchObject({ version: '0.1.0', schema: 18 })
  },
)
