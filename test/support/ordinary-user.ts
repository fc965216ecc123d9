import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const NOBODY = 65_534
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

/** What an ordinary user runs. */
interface Suite {
  /** A test file, below test/. */
  file: string
  /** An expression that the names of the tests match; empty for all of them. */
  tests?: string
  /** At least how many tests that is. */
  least: number
  /** What a line that says the file is skipped begins with. */
  skips: string
}

/**
 * Adds a test for each of some files: that it holds for an ordinary user. Most people run berth as one, for whom namespaces,
 * cgroups and limits work differently. Files that take long have a test file of their own each, so that these run side by side.
 */
export function holdForOrdinaryUser(suites: readonly Suite[]): void {
  const reason = whyNot()
  if (reason !== null) console.error(`SKIP the suite as an ordinary user: ${reason}`)
  test.skipIf(reason !== null).each([...suites])(
    '$file holds for an ordinary user too',
    async ({ file, tests = '', least, skips }) => {
      const home = mkdtempSync(join(tmpdir(), 'berth-nobody-'))
      chownSync(home, NOBODY, NOBODY)
      try {
        const path = join(import.meta.dir, '..', file)
        const runner = [process.execPath, 'test', '--timeout', '30000', '-t', tests, path]
        const child = Bun.spawn([...AS_NOBODY, ...runner], {
          cwd: join(import.meta.dir, '../..'),
          env: { ...process.env, HOME: home, TMPDIR: home },
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        const [code, report] = await Promise.all([child.exited, child.stderr.text()])
        const lines = report.split('\n').filter((line) => !line.startsWith('(pass)'))
        for (const line of lines) if (line.startsWith('SKIP')) console.error(`${line} (ordinary user)`)
        expect(code === 0 ? '' : lines.join('\n')).toBe('')
        const passed = Number(/^ (\d+) pass$/m.exec(report)?.[1] ?? 0)
        // An isolation that is not to be had here skips all.
        if (!report.includes(skips)) expect(passed).toBeGreaterThanOrEqual(least)
      } finally {
        rmSync(home, { recursive: true, force: true })
      }
    },
    // Minutes, where other work has the machine too.
    480_000,
  )
}

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
