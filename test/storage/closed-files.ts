/** Run as an ordinary user: keeps, replaces and removes states with what their owner may not read, and says what came of it. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeEphemeral } from '../../src/storage/data-directory.ts'
import { removeTree } from '../../src/storage/files.ts'
import { finishSwap, StateSwap } from '../../src/storage/state.ts'
import { Snapshots } from '../../src/testing/snapshots/snapshots.ts'

const MODES = { 'go/mod': 0o555, closed: 0o000, 'closed-too': 0o300, secret: 0o000 }
const clock = { frozen: false, offset: 0, now: 0 } as never
const file = (name: string) => ({
  name,
  created_at: new Date(0).toISOString(),
  version: '0',
  schema: 1,
  clock,
})

function fill(folder: string): string {
  const workspace = join(folder, 'servers/a/workspace')
  for (const name of ['go/mod', 'closed', 'closed-too']) {
    mkdirSync(join(workspace, name), { recursive: true })
    writeFileSync(join(workspace, name, 'file'), name)
  }
  writeFileSync(join(workspace, 'secret'), 'hidden')
  for (const [name, mode] of Object.entries(MODES)) chmodSync(join(workspace, name), mode)
  return workspace
}

const modes = (folder: string) =>
  Object.fromEntries(Object.keys(MODES).map((name) => [name, lstatSync(join(folder, name)).mode & 0o777]))

const data = mkdtempSync(join(tmpdir(), 'berth-closed-'))
const workspace = fill(data)
const snapshots = new Snapshots(data)
const save = () => snapshots.save(file('kept'), (path) => writeFileSync(path, ''))
await save()
await save()
const kept = modes(workspace)

const swap = new StateSwap(data)
await snapshots.copyTo('kept', swap.staging)
swap.ready()
swap.commit()
await swap.clear()
const restored = modes(workspace)
chmodSync(join(workspace, 'closed'), 0o700)
const text = readFileSync(join(workspace, 'closed/file'), 'utf8')
await snapshots.remove('kept')

const interrupted = new StateSwap(data)
fill(interrupted.staging)
finishSwap(data)
const swept = existsSync(join(data, 'swap'))
removeTree(data)

const ephemeral = makeEphemeral(tmpdir())
fill(ephemeral.path)
ephemeral.remove()
const left = [data, ephemeral.path].filter(existsSync)
console.log(JSON.stringify({ uid: process.getuid?.(), expected: MODES, kept, restored, text, swept, left }))
