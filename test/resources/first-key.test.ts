import { Database as Sqlite } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cipher } from '../../src/storage/cipher.ts'
import { processesOf, until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

let folder: string
const started: ServeProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-first-key-'))
})
afterEach(async () => {
  for (const { child } of started.splice(0)) {
    child.kill('SIGKILL')
    await child.exited
  }
  await until(() => processesOf(folder).length === 0, 'no process is left')
  rmSync(folder, { recursive: true, force: true })
})

function start(args: string[] = [], env: Record<string, string> = {}): ServeProcess {
  const process = serve(['--port', '0', '--data', folder, ...args], env)
  started.push(process)
  return process
}
async function end({ child }: ServeProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  child.kill(signal)
  await child.exited
}
const credentials = () => JSON.parse(readFileSync(join(folder, 'credentials.json'), 'utf8'))

/** Starts, makes a second account-wide key, deletes the first one and ends. */
async function deleteFirst() {
  const berth = start()
  const info = await berth.ready
  const { keys } = (await call(info, 'GET', '/keys')).body
  const other: string = (await call(info, 'POST', '/keys', { label: 'other' })).body.key
  expect((await call(info, 'DELETE', `/keys/${keys[0].id}`)).status).toBe(200)
  await end(berth)
  return { first: info.api_key, other }
}
const status = async (info: { base_url: string }, key: string) =>
  (await fetch(`${info.base_url}/keys`, { headers: { authorization: `Bearer ${key}` } })).status

test('a first key that was deleted stays so: the start goes on without one and says it', async () => {
  const { first, other } = await deleteFirst()
  for (let n = 0; n < 2; n++) {
    const berth = start()
    const info = await berth.ready
    expect(info.api_key as string | null).toBeNull()
    expect(credentials()).toEqual({ api_key: null, admin_token: info.admin_token })
    expect([await status(info, first), await status(info, other)]).toEqual([401, 200])
    await end(berth)
  }
})

test('--api-key puts another key in its place, or the deleted one back', async () => {
  const { first, other } = await deleteFirst()
  for (const key of [other, first]) {
    const berth = start(['--api-key', key])
    await berth.ready
    await end(berth)
    const later = start()
    const info = await later.ready
    expect(info.api_key).toBe(key)
    expect(await status(info, key)).toBe(200)
    await end(later)
  }
})

test('without credentials.json a new first key is made', async () => {
  const { first } = await deleteFirst()
  rmSync(join(folder, 'credentials.json'))
  const info = await start().ready
  expect(info.api_key).toMatch(/^sk_live_\w{43}$/)
  expect(info.api_key).not.toBe(first)
  expect(await status(info, info.api_key)).toBe(200)
})

test('kill -9 right after the answer keeps keys, scopes and the end of keys', async () => {
  const berth = start()
  const info = await berth.ready
  const server = (await call(info, 'POST', '/servers', {})).body.id
  const gone = (await call(info, 'POST', '/keys', { label: 'gone' })).body
  const limited = (await call(info, 'POST', '/keys', { label: 'limited' })).body
  await call(info, 'DELETE', `/keys/${gone.id}`)
  await call(info, 'PATCH', `/keys/${limited.id}`, { allowed_server_ids: [server] })
  const kept = (await call(info, 'POST', '/keys', { label: 'kept' })).body
  await end(berth, 'SIGKILL')
  const again = await start().ready
  const keys = [info.api_key, kept.key, limited.key, gone.key]
  expect(await Promise.all(keys.map((key) => status(again, key)))).toEqual([200, 200, 403, 401])
})

test('each key has a copy that the master key opens, a first key of before gets one at the next start', async () => {
  const berth = start()
  const info = await berth.ready
  const { key } = (await call(info, 'POST', '/keys', { label: 'x' })).body
  const copies = () => {
    const sqlite = new Sqlite(join(folder, 'berth.db'), { readonly: true })
    const cipher = new Cipher(Buffer.from(readFileSync(join(folder, 'master.key'), 'utf8'), 'base64'))
    try {
      return sqlite
        .query<{ id: string; cipher: Buffer | null }, []>('SELECT id, cipher FROM api_keys ORDER BY rowid')
        .all()
        .map(({ id, cipher: sealed }) => sealed && cipher.open(sealed, `api_keys ${id}`))
    } finally {
      sqlite.close()
    }
  }
  await until(() => copies()[0] !== null, 'the first key has its copy')
  expect(copies()).toEqual([info.api_key, key])
  await end(berth)
  const sqlite = new Sqlite(join(folder, 'berth.db'))
  sqlite.run('UPDATE api_keys SET cipher = NULL')
  sqlite.close()
  await start().ready
  await until(() => copies()[0] !== null, 'the first key has a copy again')
  expect(copies()).toEqual([info.api_key, null])
})

test('a wrong master key stops the start in one sentence that does not repeat it', async () => {
  const berth = start()
  await berth.ready
  await end(berth)
  const key = Buffer.alloc(32, 9).toString('base64')
  for (const [given, said] of [
    [key, /^berth: BERTH_MASTER_KEY is not the key .* --data directory\.\n$/],
    ['geheim', /^berth: BERTH_MASTER_KEY: expected 32 bytes .*\n$/],
  ] as const) {
    const refused = start([], { BERTH_MASTER_KEY: given })
    expect(await refused.child.exited).toBe(1)
    expect(await refused.stderr).toMatch(said)
    expect(await refused.stderr).not.toContain(given)
  }
  writeFileSync(join(folder, 'master.key'), key)
  const refused = start()
  expect(await refused.child.exited).toBe(1)
  expect(await refused.stderr).toMatch(/^berth: .*master\.key is not the key .*\n$/)
})
