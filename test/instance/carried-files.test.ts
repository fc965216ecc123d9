import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ComputeDriver } from '../../src/compute/driver.ts'
import { unpackServers } from '../../src/instance/carried-files.ts'
import { DEFAULT_PLAN } from '../../src/resources/accounts/plan.ts'
import { SERVERS, serverArchive } from '../../src/storage/state.ts'
import { temporaryFolder } from '../cli/command.ts'

test('files that are put on an engine get the room of their tier, by the plan of the account', async () => {
  using folder = temporaryFolder()
  using database = new Database(join(folder.path, 'berth.db'))
  database.run('CREATE TABLE accounts (id, plan)')
  database.run('CREATE TABLE servers (id, account_id, tier, handle)')
  database.run(`INSERT INTO accounts VALUES ('usual', NULL), ('own', '{"storage_gb":{"small":7}}')`)
  const handle = JSON.stringify({ kind: 'engine' })
  const servers = [
    ['srv_a', 'usual', 'large'],
    ['srv_b', 'own', 'small'],
  ] as const
  for (const [id, account, tier] of servers) {
    database.run('INSERT INTO servers VALUES (?, ?, ?, ?)', [id, account, tier, handle])
    const archive = serverArchive(join(folder.path, SERVERS), id)
    mkdirSync(dirname(archive), { recursive: true })
    writeFileSync(archive, '')
  }
  const sizes: Record<string, number | undefined> = {}
  const driver = {
    keepsFilesHere: false,
    placement: () => ({ image: null, root: false }),
    async create(id: string, _: unknown, bytes?: number) {
      sizes[id] = bytes
      return { kind: 'engine' }
    },
    keep() {},
    workspace: () => ({ unpack: (files: AsyncIterable<Uint8Array>) => Array.fromAsync(files) }),
  } as unknown as ComputeDriver
  await unpackServers(driver, folder.path, { plan: DEFAULT_PLAN, isWhole: true })
  expect(sizes).toEqual({ srv_a: 80e9, srv_b: 7e9 })
})
