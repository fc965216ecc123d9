import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'

/** The directory of the repository. */
export const root = join(import.meta.dir, '../..')

/**
 * What the tests of a directory of `test/` run against. Those that use berth as its users do, over HTTP and on the command
 * line, run against the executable, those that run servers on real engines also, and those that install berth against a
 * release. All others call the source. The longest path that holds a file decides.
 */
const RUNS_AGAINST: Readonly<Record<string, keyof TestFiles>> = {
  test: 'source',
  'test/cli': 'executable',
  'test/clients': 'executable',
  'test/compute': 'executable',
  'test/corpus': 'executable',
  'test/dashboard': 'executable',
  'test/e2e': 'executable',
  'test/engines': 'engines',
  'test/examples': 'executable',
  'test/http': 'executable',
  'test/release': 'release',
  'test/resources': 'executable',
  'test/resources/accounts': 'source',
  'test/resources/builds': 'source',
  'test/resources/projects/sources': 'source',
  'test/resources/webhooks': 'source',
  'test/signin': 'executable',
  'test/testing/api': 'executable',
  'test/testing/determinism': 'executable',
}

/** Files of `test/e2e` that are left out on a cluster, where servers start slowly, unless all is tried. */
const SLOW_ON_A_CLUSTER: readonly string[] = [
  ...[
    'backlog',
    'builds',
    'crash',
    'first-requests',
    'go-library',
    'metering',
    'restore-crash',
    'tasks-crash',
  ],
]

/** Test files by what they run against. Paths are relative to the repository's root. */
export interface TestFiles {
  readonly source: readonly string[]
  readonly executable: readonly string[]
  /** The executable, with Docker engines and clusters of their own. They take minutes, and run only if they are named. */
  readonly engines: readonly string[]
  /** What `scripts/release` has built. They take minutes, and run only if they are named. */
  readonly release: readonly string[]
}

/** Returns every test file but those of engines and releases, each once: with what it runs against. */
export function everyFileOnce(): TestFiles {
  const { source, executable } = sorted(testFilesBelow('test'))
  return { source, executable, engines: [], release: [] }
}

/** Returns every test file but those of engines and releases from source, and those that can be once more against the executable. */
export function everyCombination(): TestFiles {
  const { source, executable } = everyFileOnce()
  return { source: [...source, ...executable].sort(), executable, engines: [], release: [] }
}

/** Returns the test files that run once more with servers elsewhere. */
export function filesElsewhere(compute: 'docker' | 'kubernetes', isAll: boolean): string[] {
  const slow = compute === 'kubernetes' && !isAll ? SLOW_ON_A_CLUSTER : []
  return testFilesBelow('test/e2e').filter((file) => !slow.includes(basename(file, '.test.ts')))
}

/**
 * Returns the test files that paths name, each with what it runs against in the whole suite.
 *
 * @param paths files and directories, relative to the working directory
 * @throws Error if a path does not exist or has no test file
 */
export function filesAt(paths: readonly string[]): TestFiles {
  const files = new Set(
    paths.flatMap((path) => {
      const found = existsSync(path) ? testFilesBelow(relative(root, resolve(path))) : []
      if (found.length === 0) throw new Error(`${path} is no test file, and no directory that has one.`)
      return found
    }),
  )
  return sorted([...files].sort())
}

function sorted(files: readonly string[]): TestFiles {
  const against = (what: keyof TestFiles): string[] => files.filter((file) => runsAgainst(file) === what)
  return {
    source: against('source'),
    executable: against('executable'),
    engines: against('engines'),
    release: against('release'),
  }
}

function runsAgainst(file: string): keyof TestFiles | undefined {
  const holders = Object.keys(RUNS_AGAINST).filter((path) => file.startsWith(`${path}/`))
  const longest = holders.reduce((one, other) => (other.length > one.length ? other : one))
  return RUNS_AGAINST[longest]
}

function testFilesBelow(path: string): string[] {
  const whole = join(root, path)
  const files = statSync(whole).isDirectory()
    ? readdirSync(whole, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))
    : [path]
  return files.filter((file) => file.endsWith('.test.ts')).sort()
}
