import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const DIRECTORIES = join(import.meta.dir, '../../src/compute/local/server-directories.ts')

/** Deletes a server while no descriptor is free, then does what is given, and prints the directories that are left. */
const script = (then: string): string => `
  import { closeSync, openSync, readdirSync } from 'node:fs'
  import { ServerDirectories } from ${JSON.stringify(DIRECTORIES)}
  const directories = new ServerDirectories(process.cwd())
  // Everything that is loaded on first use.
  await directories.destroy(await directories.create('srv_first'))
  const handle = await directories.create('srv_a')
  const other = await directories.create('srv_b')
  const taken = []
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch {}
  const failure = await directories.destroy(handle).catch(({ code }) => code)
  for (const fd of taken) closeSync(fd)
  console.log(failure, readdirSync('servers').sort().join())
  ${then}
  for (let tries = 0; readdirSync('servers').includes('srv_a') && tries < 500; tries += 1) await Bun.sleep(10)
  console.log(readdirSync('servers').sort().join())`

test.each([
  ['deleted', 'await directories.destroy(other)', ''],
  ['created', "await directories.create('srv_c')", 'srv_b,srv_c'],
])(
  'a directory that could not be removed for lack of descriptors goes when the next server is %s',
  async (_, then, left) => {
    const cwd = mkdtempSync(join(tmpdir(), 'berth-directories-'))
    try {
      const argv = ['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, '-e', script(then)]
      const child = Bun.spawn(argv, { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
      expect(await child.stdout.text()).toBe(`EMFILE srv_a,srv_b\n${left}\n`)
    } finally {
      rmSync(cwd, { recursive: true })
    }
  },
)
