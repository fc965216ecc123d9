import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { root } from './programs.ts'

/**
 * Directories of `test/` whose tests run against the executable: they use berth as its users do, over HTTP and on the
 * command line. All others call the source.
 */
const AGAINST_EXECUTABLE: ReadonlySet<string> = new Set([
  'cli',
  'compute',
  'control',
  'determinism',
  'e2e',
  'events',
  'examples',
  'http',
  'mcp',
  'projects',
  'resources',
  'signin',
  'templates',
])

/** Test files by what they run against. Paths are relative to the repository's root. */
export interface TestFiles {
  readonly source: readonly string[]
  readonly executable: readonly string[]
}

/** Returns every test file, each once: with what it runs against. */
export function everyFileOnce(): TestFiles {
  const files = testFilesBelow('test')
  return {
    source: files.filter((file) => !isAgainstExecutable(file)),
    executable: files.filter(isAgainstExecutable),
  }
}

/** Returns every test file from source, and those that can be once more against the executable. */
export function everyCombination(): TestFiles {
  return { source: testFilesBelow('test'), executable: everyFileOnce().executable }
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
  const all = everyFileOnce()
  return {
    source: all.source.filter((file) => files.has(file)),
    executable: all.executable.filter((file) => files.has(file)),
  }
}

const isAgainstExecutable = (file: string): boolean => AGAINST_EXECUTABLE.has(file.split('/')[1] ?? '')

function testFilesBelow(path: string): string[] {
  const whole = join(root, path)
  const files = statSync(whole).isDirectory()
    ? readdirSync(whole, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))
    : [path]
  return files.filter((file) => file.endsWith('.test.ts')).sort()
}
