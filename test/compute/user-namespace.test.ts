import { test } from 'bun:test'
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

// Such a process would keep berth's port, and the lock of its data directory.
test.skipIf(!isRoot)(
  'whoever is killed while it makes a user namespace leaves no process behind',
  async () => {
    const mark = `user-namespace-${crypto.randomUUID()}`
    const module = join(import.meta.dir, '../../src/compute/bubblewrap/kernel-calls.ts')
    for (let round = 0; round < 12; round += 1) {
      const maker = Bun.spawn([process.execPath, '-e', MAKER, mark, module], { stderr: 'ignore' })
      await maker.stdout.getReader().read()
      await Bun.sleep(round)
      maker.kill('SIGKILL')
      await maker.exited
    }
    await until(() => processesOf(mark).length === 0, 'the end of all')
  },
)
