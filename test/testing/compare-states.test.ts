import { Database as Sqlite } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Compares two states, named by their directories, and prints what differs. */
const COMPARE = `
  const { compareStates } = await import('${import.meta.dir}/../../src/testing/snapshots/compare.ts')
  const stateIn = (dir) => ({ database: dir + '/berth.db', servers: dir + '/servers' })
  const [from, to] = process.argv.slice(-2)
  console.log(JSON.stringify(await compareStates(stateIn(from), stateIn(to))))
`

/** Runs a command that may read no more than the modes of files allow it, even as root. */
const byModes = (...argv: string[]) =>
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', ...argv]
    : ['env', ...argv]

/** Makes a state with one server in a new directory. */
function makeState(dir: string): void {
  mkdirSync(join(dir, 'servers/srv_1/workspace/closed'), { recursive: true })
  writeFileSync(join(dir, 'servers/srv_1/workspace/closed/file'), 'text')
  using database = new Sqlite(join(dir, 'berth.db'))
  database.run('CREATE TABLE servers (id TEXT, task TEXT)')
  database.run("INSERT INTO servers VALUES ('srv_1', 'a task')")
}

test.skipIf(process.platform !== 'linux' || Bun.spawnSync(byModes('true')).exitCode !== 0)(
  'a comparison with a directory that may not be read says that it is not complete',
  () => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-compare-'))
    const states = [join(dir, 'before'), join(dir, 'after')]
    try {
      for (const state of states) makeState(state)
      for (const state of states) chmodSync(join(state, 'servers/srv_1/workspace/closed'), 0)
      const { stdout, stderr } = Bun.spawnSync(byModes(process.execPath, '-e', COMPARE, ...states))
      expect(stderr.toString()).toBe('')
      expect(JSON.parse(stdout.toString())).toEqual({
        kinds: [],
        files: [{ server_id: 'srv_1', added: 0, removed: 0, changed: 0, files: [], is_complete: false }],
      })
    } finally {
      for (const state of states) chmodSync(join(state, 'servers/srv_1/workspace/closed'), 0o700)
      rmSync(dir, { recursive: true })
    }
  },
)
