/**
 * Run as a process of its own, as an ordinary user, by workspace-user.test.ts: root is exempt from
 * modes, so that a test that runs as root cannot see what they do. Prints one JSON object.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { WorkspaceError } from '../../src/compute/workspace.ts'
import { Box, KINDS } from './workspace-fixture.ts'

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'done',
    (error) => (error instanceof WorkspaceError ? error.fault : String(error)),
  )

await using box = await Box.open(KINDS.find((kind) => kind === process.argv[2]))
const mode = (path: string) => (lstatSync(box.at(path)).mode & 0o777).toString(8)
await box.write('open/file', 'x')
await box.write('closed/deep/file', 'x'.repeat(50_000))
await box.write('unlistable/file', 'x')
await box.write('readonly/file', 'x')
await box.write('secret', 'x')
const before = await box.workspace.usage()
chmodSync(box.at('closed/deep'), 0o000)
chmodSync(box.at('closed'), 0o000)
chmodSync(box.at('unlistable'), 0o300)
chmodSync(box.at('readonly'), 0o500)
chmodSync(box.at('secret'), 0o000)
// What a link below a removed folder leads to keeps its mode.
mkdirSync(`${box.outside}/kept`, { mode: 0o500 })
const report = {
  uid: process.getuid?.(),
  list: await box.workspace.list({ all: true }),
  sameUsage: (await box.workspace.usage()) === before,
  modes: [mode('closed'), mode('unlistable'), mode('readonly')],
  readClosed: await outcome(box.workspace.read('closed/deep/file')),
  readSecret: await outcome(box.workspace.read('secret')),
  readUnlistable: await outcome(box.workspace.read('unlistable/file')),
  replaceSecret: await outcome(box.write('secret', 'y')),
  secretMode: mode('secret'),
  writeReadonly: await outcome(box.write('readonly/new', 'y')),
  removeInReadonly: await outcome(box.workspace.remove('readonly/file')),
  removed: [] as string[],
  left: [] as string[],
  placed: [] as string[],
}
for (const path of ['closed', 'unlistable', 'readonly', 'secret'])
  report.removed.push(await outcome(box.workspace.remove(path)))
report.left = readdirSync(box.root)
// A folder that takes the place of one that its owner may not write into, from one closed to him.
{
  await using staging = await box.workspace.staging()
  mkdirSync(`${staging.path}/code`)
  writeFileSync(`${staging.path}/code/new`, 'x', { mode: 0o000 })
  chmodSync(`${staging.path}/code`, 0o000)
  mkdirSync(box.at('placed/old'), { recursive: true })
  chmodSync(box.at('placed/old'), 0o500)
  chmodSync(box.at('placed'), 0o500)
  report.placed.push(await outcome(box.workspace.moveIn(`${staging.path}/code`, 'placed')))
  report.placed.push(...readdirSync(box.at('placed')), mode('placed'), mode('placed/new'))
}
// A folder of many closed levels.
let deep = box.at('deep')
for (let level = 0; level < 50; level += 1) {
  mkdirSync(deep)
  writeFileSync(`${deep}/file`, 'x')
  deep += '/d'
}
Bun.spawnSync(['chmod', '-R', '000', box.at('deep')])
report.removed.push(await outcome(box.workspace.remove('deep')))
console.log(JSON.stringify(report))
