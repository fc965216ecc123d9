import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../cli/command.ts'
import type { KeyedInfo } from '../support/berth.ts'
import { isLocalCompute, serversWithFiles } from '../support/compute.ts'
import { until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

let dataDir: string
let berth: ServeProcess

const at = (path: string): string => join(dataDir, path)
const control = (info: KeyedInfo, method: string, path: string, body?: object) =>
  call({ ...info, api_key: info.admin_token }, method, `/_berth${path}`, body)

async function start(): Promise<KeyedInfo> {
  berth = serve(['--port', '0', '--data', dataDir])
  return berth.ready
}

async function stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
  berth.child.kill(signal)
  await berth.child.exited
}

/** Makes a server with a file. */
async function serverWith(info: KeyedInfo, file: string): Promise<string> {
  const { status, body } = await call(info, 'POST', '/servers', {})
  if (status !== 201) throw new Error(`no server: ${JSON.stringify(body)}`)
  const { id } = body
  await call(info, 'PUT', `/servers/${id}/files`, { path: file, content: file })
  return id
}

/** Reports whether the files of a server are there: those of this machine, or its volume or claim. */
const hasFile = async (id: string, file: string): Promise<boolean> =>
  isLocalCompute
    ? existsSync(at(`servers/${id}/workspace/${file}`))
    : (await serversWithFiles(dataDir)).includes(id)

/** Runs `berth doctor --leaks` and reads its report. */
async function doctor(...more: string[]) {
  const { stdout, stderr, exitCode } = await run(['doctor', '--leaks', '--json', '--data', dataDir, ...more])
  return { exitCode, stderr, report: stdout === '' ? null : JSON.parse(stdout) }
}

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'berth-lost-'))
})

afterEach(async () => {
  await stop()
  rmSync(dataDir, { recursive: true, force: true })
})

test.each([
  ['is missing', () => rmSync(at('berth.db'))],
  ['is empty', () => writeFileSync(at('berth.db'), '')],
])(
  'refuses to start beside files of servers if the database %s, and changes nothing',
  async (state, lose) => {
    const info = await start()
    const id = await serverWith(info, 'file')
    await control(info, 'POST', '/snapshots', { name: 'older' })
    await control(info, 'POST', '/snapshots', { name: 'newest' })
    await stop()
    lose()
    const noted = isLocalCompute ? 'servers' : 'engine'
    await expect(start()).rejects.toThrow(
      new RegExp(
        `berth\\.db ${state}.* a server \\(${id}\\).*--snapshot \\S*/snapshots/newest --data NEW.*move \\S*/${noted} away`,
      ),
    )
    expect(await berth.child.exited).toBe(1)
    expect(await hasFile(id, 'file')).toBe(true)

    rmSync(at(noted), { recursive: true })
    expect((await start()).kept).toEqual([])
  },
)

const flipped = (bytes: Uint8Array): Uint8Array =>
  bytes.map((byte, at) => (at > 100 && at % 97 === 0 ? byte ^ 0x10 : byte))

test.each<[string, (bytes: Uint8Array) => Uint8Array]>([
  ['cut to 50 bytes', (bytes) => bytes.subarray(0, 50)],
  ['cut to half', (bytes) => bytes.subarray(0, bytes.length / 2)],
  ['with another header', (bytes) => Buffer.concat([Buffer.alloc(100, 'no'), bytes.subarray(100)])],
  ['with flipped bits', flipped],
])('refuses a database %s, names the newest snapshot, and changes nothing', async (_, damage) => {
  const info = await start()
  await control(info, 'POST', '/snapshots', { name: 'newest' })
  await stop()
  const damaged = damage(readFileSync(at('berth.db')))
  writeFileSync(at('berth.db'), damaged)
  await expect(start()).rejects.toThrow(
    /^berth: The database \S+ is damaged: .{1,200}--snapshot \S*\/snapshots\/newest --data NEW\.\n$/,
  )
  expect(await berth.child.exited).toBe(1)
  expect(Buffer.compare(readFileSync(at('berth.db')), damaged)).toBe(0)
})

test('names a directory in the place of the database', async () => {
  mkdirSync(at('berth.db'))
  await expect(start()).rejects.toThrow(/^berth: \S+ is a directory, and berth's database belongs .*\n$/)
})

test('starts anew without a database if no server was ever given to somebody', async () => {
  berth = serve(['--port', '0', '--data', dataDir, '--spare-servers', '1'])
  await berth.ready
  await until(async () => (await serversWithFiles(dataDir)).length > 0, 'a spare server')
  await stop('SIGKILL')
  for (const file of readdirSync(dataDir).filter((name) => name.startsWith('berth.db'))) rmSync(at(file))
  const info = await start()
  expect(info.kept).toEqual([])
  expect((await call(info, 'GET', '/servers')).body).toEqual({ servers: [] })
  await until(async () => (await serversWithFiles(dataDir)).length === 0, 'its files are removed')
})

test('keeps what an older database does not name through starts, resets and restores, until a person removes it', async () => {
  let info = await start()
  const older = await serverWith(info, 'older')
  await control(info, 'POST', '/snapshots', { name: 'older' })
  await stop()
  copyFileSync(at('berth.db'), at('older.db'))

  info = await start()
  const newer = await serverWith(info, 'newer')
  const untouched = (await call(info, 'POST', '/servers', {})).body.id
  await control(info, 'POST', '/snapshots', { name: 'newer' })
  await stop()
  copyFileSync(at('older.db'), at('berth.db'))
  rmSync(at('older.db'))

  const kept = [newer, untouched].sort()
  const expectKept = async (ids: readonly string[]): Promise<void> => {
    expect([...ids].sort()).toEqual(kept)
    await expectThere()
  }
  /** At a start, volumes and claims are only counted. */
  const expectKeptBy = (ready: KeyedInfo): Promise<void> => {
    if (isLocalCompute) return expectKept(ready.kept)
    expect(ready.kept).toEqual([])
    return expectThere()
  }
  const expectThere = async (): Promise<void> => {
    expect(await hasFile(newer, 'newer')).toBe(true)
    expect(await serversWithFiles(dataDir)).toEqual(expect.arrayContaining(kept))
  }
  info = await start()
  await expectKeptBy(info)
  expect(await hasFile(older, 'older')).toBe(true)
  const { report, exitCode } = await doctor('--fix')
  expect({ exitCode, leaks: report.leaks }).toEqual({ exitCode: 0, leaks: [] })
  await expectKept(
    report.kept.map(
      ({ id, detail }: { id: string; detail: string }) => /srv_\w+/.exec(`${id} ${detail}`)?.[0],
    ),
  )

  expect((await control(info, 'POST', '/reset')).status).toBe(200)
  await expectKeptBy(info)
  expect((await control(info, 'POST', '/snapshots/older/restore')).status).toBe(200)
  await expectKeptBy(info)
  expect(await hasFile(older, 'older')).toBe(true)
  if (!isLocalCompute) return
  const refused = await control(info, 'POST', '/snapshots/newer/restore')
  expect(refused.status).toBe(400)
  expect(refused.body.message).toMatch(/Move \S*\/servers\/srv_\w+ away, or remove it with "berth doctor/)
  await expectKept(kept)
  await stop()
  expect((await berth.stderr).match(/WARN.*which is kept/g)).toHaveLength(2)

  info = await start()
  await expectKeptBy(info)
  const removed = await doctor('--fix-kept', newer, '--yes')
  expect(removed.report.kept).toMatchObject([{ id: untouched }])
  expect(readdirSync(at('servers')).sort()).toEqual([older, untouched].sort())
  const unknown = await doctor('--fix-kept', older, '--yes')
  expect(unknown.exitCode).toBe(1)
  expect(unknown.stderr).toContain(`No directory of the id "${older}" is kept. Kept are: ${untouched}.`)
}, 60_000)

test('removes the files of a deleted server at the next start if a kill prevented it before', async () => {
  let info = await start()
  const id = await serverWith(info, 'file')
  // Deleting this takes a while.
  await call(info, 'POST', `/servers/${id}/exec`, {
    command: 'for d in $(seq 60); do mkdir d$d; (cd d$d; touch $(seq 100)); done',
  })
  const deleting = call(info, 'DELETE', `/servers/${id}`).catch(() => {})
  // The deletion is recorded; the files may go for a while still.
  while ((await call(info, 'GET', '/servers')).body.servers.length > 0) await Bun.sleep(1)
  await stop('SIGKILL')
  await deleting
  info = await start()
  expect(info.kept).toEqual([])
  await until(async () => (await serversWithFiles(dataDir)).length === 0, 'its files are removed')
}, 60_000)
