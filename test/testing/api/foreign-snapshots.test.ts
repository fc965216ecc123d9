import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { berthForTests } from '../../support/berth.ts'

const berth = await berthForTests()
const server = await berth.server()
await berth.exec(server, 'echo own > note.txt; ln -s /etc outside')
await berth.call('POST', `/servers/${server}/projects`, { name: 'app' })

const snapshotOf = (name: string): string => join(berth.dataDir, 'snapshots', name)

/** Saves a snapshot and puts a link to a directory elsewhere in place of a path in it. */
async function crafted(name: string, path: string, elsewhere: string): Promise<void> {
  expect((await berth.control('POST', '/snapshots', { name })).status).toBe(201)
  const place = join(snapshotOf(name), path)
  renameSync(place, join(elsewhere, basename(place)))
  symlinkSync(elsewhere, place)
}

test.each([
  ['servers', () => 'servers'],
  ['a-server', () => `servers/${server}`],
  ['a-workspace', () => `servers/${server}/workspace`],
  ['the-database', () => 'berth.db'],
])('a snapshot with a link in place of %s is refused, and nothing changes', async (name, path) => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'berth-elsewhere-'))
  try {
    // As in the directory of servers: berth removes those that it does not know.
    mkdirSync(join(elsewhere, 'kept'))
    writeFileSync(join(elsewhere, 'kept/file'), 'kept')
    await crafted(name, path(), elsewhere)
    const { status, body } = await berth.control('POST', `/snapshots/${name}/restore`, {})
    expect([status, body.message]).toEqual([400, expect.stringContaining(`${path()} is a link`)])
    expect(existsSync(join(elsewhere, 'kept/file'))).toBe(true)
    expect((await berth.exec(server, 'cat note.txt')).stdout).toBe('own\n')
  } finally {
    rmSync(elsewhere, { recursive: true, force: true })
  }
})

/** Changes the database of a snapshot. */
function change(name: string, sql: string): void {
  using sqlite = new Database(join(snapshotOf(name), 'berth.db'))
  sqlite.run(sql)
}

/** Overwrites the last page of a database. */
const scribble = (path: string): void => {
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(255, bytes.length - 4096))
}

test.each([
  [
    'a-trigger',
    'has the trigger "odd", which berth did not make',
    (name: string) =>
      change(name, 'CREATE TRIGGER odd AFTER UPDATE ON servers BEGIN DELETE FROM servers; END'),
  ],
  [
    'a-view',
    'has the view "odd", which berth did not make',
    (name: string) => change(name, 'CREATE VIEW odd AS SELECT 1'),
  ],
  ['a-lost-table', 'lacks the table "tasks"', (name: string) => change(name, 'DROP TABLE tasks')],
  [
    'a-new-column',
    'has the table "servers" in another form than berth makes',
    (name: string) => change(name, 'ALTER TABLE servers ADD COLUMN odd TEXT'),
  ],
  ['a-broken-page', 'is corrupt', (name: string) => scribble(join(snapshotOf(name), 'berth.db'))],
  [
    'another-file',
    'cannot be read (file is not a database)',
    (name: string) => writeFileSync(join(snapshotOf(name), 'berth.db'), 'text'.repeat(200)),
  ],
  [
    'no-database',
    'cannot be read (unable to open database file)',
    (name: string) => rmSync(join(snapshotOf(name), 'berth.db')),
  ],
])('a snapshot with %s is refused with what is wrong, and nothing changes', async (name, message, craft) => {
  expect((await berth.control('POST', '/snapshots', { name })).status).toBe(201)
  craft(name)
  const { status, body } = await berth.control('POST', `/snapshots/${name}/restore`, {})
  expect([status, body.message]).toEqual([
    400,
    expect.stringContaining(`The snapshot "${name}" is damaged: its database ${message}`),
  ])
  expect((await berth.exec(server, 'cat note.txt')).stdout).toBe('own\n')
})

test.each([
  ['servers', 'id', "'../../elsewhere'"],
  ['projects', 'id', "'..'"],
  ['projects', 'server_id', "'a/../../elsewhere'"],
  ['events', 'id', "x'2e2e'"],
])('a snapshot with a path as an id is refused and not read: %s.%s', async (table, column, id) => {
  const name = `an-id-${table}-${column}`
  expect((await berth.control('POST', '/snapshots', { name })).status).toBe(201)
  change(name, `UPDATE ${table} SET ${column} = ${id} WHERE rowid = (SELECT min(rowid) FROM ${table})`)
  const message = `The snapshot "${name}" is damaged: its database has something in the column ${column} of ${table} that is no id.`
  const restored = await berth.control('POST', `/snapshots/${name}/restore`, {})
  expect([restored.status, restored.body.message]).toEqual([400, message])
  const compared = await berth.control('GET', `/snapshots/${name}/diff`)
  expect([compared.status, compared.body.message]).toEqual([400, message])
  expect((await berth.exec(server, 'cat note.txt')).stdout).toBe('own\n')
})

test('a snapshot with a FIFO in place of the database is refused', async () => {
  expect((await berth.control('POST', '/snapshots', { name: 'fifo' })).status).toBe(201)
  const database = join(snapshotOf('fifo'), 'berth.db')
  rmSync(database)
  expect(Bun.spawnSync(['mkfifo', database]).exitCode).toBe(0)
  const { status, body } = await berth.control('POST', '/snapshots/fifo/restore', {})
  expect([status, body.message]).toEqual([
    400,
    'The snapshot "fifo" is damaged: berth.db is neither a file nor a directory.',
  ])
  const compared = await berth.control('GET', '/snapshots/fifo/diff')
  const told = 'The snapshot "fifo" is damaged: its database is no file.'
  expect([compared.status, compared.body.message]).toEqual([400, told])
})

test('files that are not state are not taken from a snapshot, and links of servers are', async () => {
  expect((await berth.control('POST', '/snapshots', { name: 'more' })).status).toBe(201)
  const elsewhere = mkdtempSync(join(tmpdir(), 'berth-elsewhere-'))
  try {
    symlinkSync(elsewhere, join(snapshotOf('more'), 'packages'))
    writeFileSync(join(snapshotOf('more'), 'credentials.json'), '{}')
    expect((await berth.control('POST', '/snapshots/more/restore', {})).status).toBe(200)
    expect((await berth.exec(server, 'cat note.txt; readlink outside')).stdout).toBe('own\n/etc\n')
    expect(await Bun.file(join(berth.dataDir, 'credentials.json')).text()).toContain(berth.info.api_key)
  } finally {
    rmSync(elsewhere, { recursive: true, force: true })
  }
})

test('a snapshot with a link in place of a log is refused: berth would write where it leads', async () => {
  expect((await berth.control('POST', '/snapshots', { name: 'a-log' })).status).toBe(201)
  const logs = join(snapshotOf('a-log'), 'logs/prj_other')
  mkdirSync(logs, { recursive: true })
  symlinkSync(join(snapshotOf('a-log'), 'elsewhere'), join(logs, 'app.jsonl'))
  const { status, body } = await berth.control('POST', '/snapshots/a-log/restore', {})
  expect([status, body.message]).toEqual([400, expect.stringContaining('logs/prj_other/app.jsonl is a link')])
})

const canMakeDevices = process.getuid?.() === 0 && makesDevice()

/** Reports whether this process may make devices: not in every container. */
function makesDevice(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'berth-device-'))
  const made = Bun.spawnSync(['mknod', join(folder, 'null'), 'c', '1', '3']).success
  rmSync(folder, { recursive: true })
  return made
}

test.skipIf(!canMakeDevices)('a snapshot with a device among the files of a server is refused', async () => {
  expect((await berth.control('POST', '/snapshots', { name: 'device' })).status).toBe(201)
  const workspace = join(snapshotOf('device'), 'servers', server, 'workspace')
  mkdirSync(join(workspace, 'below'))
  // Without rights a program can make one of the number 0 itself.
  expect(Bun.spawnSync(['mknod', join(workspace, 'below/whiteout'), 'c', '0', '0']).success).toBe(true)
  expect((await berth.control('POST', '/snapshots/device/restore', {})).status).toBe(200)
  expect(Bun.spawnSync(['mknod', join(workspace, 'below/null'), 'c', '1', '3']).success).toBe(true)
  const { status, body } = await berth.control('POST', '/snapshots/device/restore', {})
  const message = `The snapshot "device" is damaged: servers/${server}/workspace/below/null is a device.`
  expect([status, body.message]).toEqual([400, message])
})

test('a snapshot with a FIFO in place of its description keeps nobody waiting', async () => {
  expect((await berth.control('POST', '/snapshots', { name: 'mute' })).status).toBe(201)
  const description = join(snapshotOf('mute'), 'snapshot.json')
  rmSync(description)
  expect(Bun.spawnSync(['mkfifo', description]).exitCode).toBe(0)
  const { snapshots } = (await berth.control('GET', '/snapshots')).body
  expect(snapshots.map(({ name }: { name: string }) => name)).not.toContain('mute')
  const { status, body } = await berth.control('POST', '/snapshots/mute/restore', {})
  expect([status, body.message]).toEqual([400, expect.stringContaining('its snapshot.json is damaged')])
})
