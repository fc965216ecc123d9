import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ISOLATIONS } from '../../src/config/config.ts'

// Most people run berth as an ordinary user, for whom namespaces, cgroups and limits work differently.
const NOBODY = 65_534
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

const reason = whyNot()
if (reason !== null) console.error(`SKIP the suite as an ordinary user: ${reason}`)

test.skipIf(reason !== null).each([...ISOLATIONS])(
  'the suite of %s holds for an ordinary user too',
  async (name) => {
    const home = mkdtempSync(join(tmpdir(), 'berth-nobody-'))
    chownSync(home, NOBODY, NOBODY)
    try {
      const file = join(import.meta.dir, `${name}.test.ts`)
      const child = Bun.spawn([...AS_NOBODY, process.execPath, 'test', '--timeout', '30000', file], {
        cwd: join(import.meta.dir, '../..'),
        env: { ...process.env, HOME: home, TMPDIR: home },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const [code, report] = await Promise.all([child.exited, child.stderr.text()])
      const lines = report.split('\n').filter((line) => !line.startsWith('(pass)'))
      for (const line of lines) if (line.startsWith('SKIP')) console.error(`${line} (ordinary user)`)
      expect(code === 0 ? '' : lines.join('\n')).toBe('')
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  },
  180_000,
)

function whyNot(): string | null {
  if (process.getuid?.() !== 0) return 'the tests run as one already'
  if (Bun.which('setpriv') === null) return 'setpriv is not installed'
  const program = process.env.BERTH_TEST_EXECUTABLE ?? process.execPath
  const { exitCode } = Bun.spawnSync([
    ...AS_NOBODY,
    'sh',
    '-c',
    'test -x "$0" && test -r "$1"',
    program,
    import.meta.path,
  ])
  return exitCode === 0 ? null : 'an ordinary user can read neither the executable nor the sources here'
}
