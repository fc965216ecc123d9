import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ISOLATIONS, type Isolation } from '../../src/config/config.ts'
import { thorough } from '../support/thorough.ts'

// Most people run berth as an ordinary user, for whom namespaces, cgroups and limits work differently.
const NOBODY = 65_534
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

/** What an ordinary user runs: a file of tests, which of them, and at least how many these are. */
interface Suite {
  file: string
  tests: string
  least: number
  /** What a line that says the file is skipped begins with. */
  skips: string
}

/**
 * The tests of each isolation that an ordinary user runs. How commands run, end and are limited depends on the user in one
 * way for all of them, so it is tried in one, and in the others what they alone promise. Output passes between sandboxd
 * and its commands, where the user has no part.
 */
const TESTS: Record<Isolation, string> = {
  bubblewrap: thorough ? '' : '^bubblewrap (?!output |a command without a timeout )',
  landlock: thorough ? '' : '^landlock (a command|isolation) ',
  none: thorough ? '' : '^none (a command|a terminal works where setsid is missing)',
}

const SUITES: Suite[] = [
  ...ISOLATIONS.map((name) => ({
    file: `${name}.test.ts`,
    tests: TESTS[name],
    least: 16,
    skips: `SKIP ${name}:`,
  })),
  {
    file: '../resources/terminals/isolations.test.ts',
    tests: '',
    least: 1,
    skips: 'SKIP terminals of every isolation:',
  },
  { file: 'network/server-network.test.ts', tests: '', least: 7, skips: 'SKIP the networks of servers:' },
  { file: 'network/inside.test.ts', tests: '', least: 8, skips: 'SKIP what programs on a server reach:' },
  { file: 'network/server.test.ts', tests: '', least: 4, skips: 'SKIP what a server reaches:' },
  { file: 'network/redirect.test.ts', tests: '', least: 4, skips: 'SKIP the networks of servers:' },
  { file: 'network/start.test.ts', tests: '', least: 5, skips: 'SKIP the networks of servers:' },
  { file: 'network/kept-connections.test.ts', tests: '', least: 12, skips: 'SKIP the networks of servers:' },
  { file: 'network/outbound.test.ts', tests: '', least: 12, skips: 'SKIP what leaves a server:' },
]

const reason = whyNot()
if (reason !== null) console.error(`SKIP the suite as an ordinary user: ${reason}`)

test.skipIf(reason !== null).each(SUITES)(
  '$file holds for an ordinary user too',
  async ({ file, tests, least, skips }) => {
    const home = mkdtempSync(join(tmpdir(), 'berth-nobody-'))
    chownSync(home, NOBODY, NOBODY)
    try {
      const path = join(import.meta.dir, file)
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
