import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { processesOf, until } from '../support/processes.ts'

const isRoot = process.getuid?.() === 0
if (!isRoot) console.error('SKIP user namespaces of the kernel’s own: only root makes them')

/** Makes user namespaces, as servers of root get them, until it is killed. */
const MAKER = `
const [, mark, module] = process.argv
const calls = (await import(module)).loadKernelCalls()
console.log(mark)
for (;;) require('node:fs').closeSync(calls.makeUserNamespace('0 100000 65536\\n', 100000))
`

/** Makes some user namespaces, then does nothing. */
const MAKER_OF_SOME = `
const [, module] = process.argv
const calls = (await import(module)).loadKernelCalls()
for (let n = 0; n < 40; n += 1) require('node:fs').closeSync(calls.makeUserNamespace('0 100000 65536\\n', 100000))
console.log('made')
setInterval(() => {}, 1_000)
`

const MODULE = join(import.meta.dir, '../../src/compute/bubblewrap/kernel-calls.ts')

test.skipIf(!isRoot)('the process that makes user namespaces collects the processes for it', async () => {
  await using maker = Bun.spawn([process.execPath, '-e', MAKER_OF_SOME, MODULE], { stderr: 'inherit' })
  const { value } = await maker.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toBe('made\n')
  const tasks = `/proc/${maker.pid}/task`
  const children = (): string =>
    readdirSync(tasks)
      .map((task) => readFileSync(join(tasks, task, 'children'), 'utf8'))
      .join('')
  await until(() => children() === '', 'the end of its children')
})

// Such a process would keep berth's port, and the lock of its data directory.
test.skipIf(!isRoot)(
  'a process that is killed while it makes a user namespace leaves no process behind',
  async () => {
    const mark = `user-namespace-${crypto.randomUUID()}`
    for (let round = 0; round < 12; round += 1) {
      const maker = Bun.spawn([process.execPath, '-e', MAKER, mark, MODULE], { stderr: 'ignore' })
      await maker.stdout.getReader().read()
      await Bun.sleep(round)
      maker.kill('SIGKILL')
      await maker.exited
    }
    await until(() => processesOf(mark).length === 0, 'the end of all')
  },
)
