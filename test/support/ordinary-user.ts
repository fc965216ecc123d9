import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** An ordinary user of every machine. */
export const NOBODY = 65_534

const IS_ROOT = process.getuid?.() === 0
const REPOSITORY = join(import.meta.dir, '../..')

/**
 * Shows directories by their own paths also where one above them is closed to others, as root's home is. Arguments: a staging
 * directory, the directories, `--`, the closed ones above them, `--`, the command. Mounts are those of the command alone.
 */
const OPEN = `
set -e
stage=$1; shift
mount -t tmpfs none "$stage"
count=0
while [ "$1" != -- ]; do
  count=$((count + 1)); mkdir "$stage/$count"; mount --bind "$1" "$stage/$count"; eval "shown$count=\\$1"; shift
done
shift
while [ "$1" != -- ]; do mount -t tmpfs -o mode=755 none "$1"; shift; done
shift
while [ $count -gt 0 ]; do
  eval "shown=\\$shown$count"; mkdir -p "$shown"; mount --bind "$stage/$count" "$shown"; count=$((count - 1))
done
umount --recursive "$stage"
exec "$@"`

/**
 * Returns a command that runs another as a user of this machine, if root runs the tests; else that command itself. The user
 * finds the repository and this Bun also if they lie in a directory that others may not enter.
 */
export function asUser(command: readonly string[], uid = NOBODY): string[] {
  if (!IS_ROOT) return [...command]
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...command]
  const shown = [REPOSITORY, dirname(process.execPath)]
  const closed = new Set(shown.flatMap((path) => firstClosedAbove(path) ?? []))
  if (closed.size === 0) return as
  const opened = ['unshare', '--mount', 'sh', '-c', OPEN, 'open', '/mnt', ...shown, '--', ...closed, '--']
  return [...opened, ...as]
}

/** Returns the uppermost directory above a path that other users may not enter. */
function firstClosedAbove(path: string): string | undefined {
  const above: string[] = []
  for (let at = dirname(path); at !== '/'; at = dirname(at)) above.unshift(at)
  return above.find((one) => (statSync(one).mode & 0o001) === 0)
}

/** Returns why an ordinary user cannot run programs of the repository here, or null if one can. */
export function whyNoOrdinaryUser(): string | null {
  if (IS_ROOT && Bun.which('setpriv') === null) return 'setpriv is not installed'
  const program = process.env.BERTH_TEST_EXECUTABLE ?? process.execPath
  const look = ['sh', '-c', 'test -x "$0" && test -x "$1" && test -r "$2"']
  const { exitCode } = Bun.spawnSync(asUser([...look, program, process.execPath, import.meta.path]))
  return exitCode === 0 ? null : 'an ordinary user can read neither the executable nor the sources here'
}

/** What an ordinary user runs. */
interface Suite {
  /** A test file, below test/. */
  file: string
  /** An expression that the names of the tests match; empty for all of them. */
  tests?: string
  /** What a line that says the file is skipped begins with. */
  skips: string
}

/**
 * Adds a test for each of some files: that it holds for an ordinary user. Most people run berth as one, for whom namespaces,
 * cgroups and limits work differently. Files that take long have a test file of their own each, so that these run side by side.
 */
export function holdForOrdinaryUser(suites: readonly Suite[]): void {
  const reason = IS_ROOT ? whyNoOrdinaryUser() : 'the tests run as one already'
  if (reason !== null) console.error(`SKIP the suite as an ordinary user: ${reason}`)
  test.skipIf(reason !== null).each([...suites])(
    '$file holds for an ordinary user too',
    async ({ file, tests = '', skips }) => {
      const home = mkdtempSync(join(tmpdir(), 'berth-nobody-'))
      chownSync(home, NOBODY, NOBODY)
      try {
        const path = join(import.meta.dir, '..', file)
        const runner = [process.execPath, 'test', '-t', tests, path]
        const child = Bun.spawn(asUser(runner), {
          cwd: REPOSITORY,
          env: { ...process.env, HOME: home, TMPDIR: home },
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        const [code, report] = await Promise.all([child.exited, child.stderr.text()])
        const lines = report.split('\n').filter((line) => !line.startsWith('(pass)'))
        const reasons = lines.filter((line) => line.startsWith('SKIP'))
        for (const line of reasons) console.error(`${line} (ordinary user)`)
        expect(code === 0 ? '' : lines.join('\n')).toBe('')
        // An isolation that is not to be had here skips all. What else is skipped says why.
        const count = (what: string) => Number(new RegExp(`^ (\\d+) ${what}$`, 'm').exec(report)?.[1] ?? 0)
        if (!reasons.some((line) => line.startsWith(skips))) expect(count('pass')).toBeGreaterThan(0)
        if (reasons.length === 0) expect(count('skip')).toBe(0)
      } finally {
        rmSync(home, { recursive: true, force: true })
      }
    },
    // Minutes, where other work has the machine too.
    480_000,
  )
}
