import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildPackage, expectEveryCall, installPythonClient, PATIENCE_MS, ROOT, runSuite } from './suite.ts'

const skipped = await buildPackage('python')
if (skipped) console.error(skipped)

/** The oldest Python that the client takes, as a minor version of 3. */
const OLDEST = 10

/** Returns the minor version of a Python 3; null if the program is none. */
const minorOf = (python: string): number | null => {
  const { exitCode, stdout } = Bun.spawnSync([python, '--version'])
  const minor = /^Python 3\.(\d+)/.exec(stdout.toString())?.[1]
  return exitCode === 0 && minor !== undefined ? Number(minor) : null
}

/** Returns the Pythons of this machine by minor version: those on PATH, those of pyenv and those of uv. */
function installedPythons(): Map<number, string> {
  const { HOME = '/', PYENV_ROOT = join(HOME, '.pyenv') } = process.env
  const { XDG_DATA_HOME = join(HOME, '.local/share') } = process.env
  const kept = [join(PYENV_ROOT, 'versions'), join(XDG_DATA_HOME, 'uv/python')]
    .filter((directory) => existsSync(directory))
    .flatMap((directory) => readdirSync(directory).map((name) => join(directory, name, 'bin/python3')))
  const named = Array.from({ length: 10 }, (_, more) => Bun.which(`python3.${OLDEST + more}`) ?? '')
  const found = new Map<number, string>()
  for (const python of [...named, ...kept].filter((path) => existsSync(path))) {
    const minor = minorOf(python)
    if (minor !== null && minor >= OLDEST && !found.has(minor)) found.set(minor, python)
  }
  return found
}

/** Those that the client is tried with by version: the default one, which runs the whole suite, the oldest and the newest. */
const pythons = new Map<string, string>()
if (skipped === null) {
  const installed = installedPythons()
  const ordinary = minorOf('python3') ?? OLDEST
  pythons.set(`3.${ordinary}`, 'python3')
  const newest = Math.max(OLDEST, ...installed.keys())
  for (const minor of new Set([OLDEST, newest])) {
    const python = installed.get(minor)
    if (python !== undefined && minor !== ordinary) pythons.set(`3.${minor}`, python)
  }
  const lacks = [OLDEST, ...(newest > ordinary ? [] : [ordinary + 1])].filter(
    (minor) => minor !== ordinary && !installed.has(minor),
  )
  if (lacks.length > 0)
    console.error(
      `SKIP: the Python client under 3.${lacks.join(' and 3.')}: neither PATH, pyenv nor uv has it.`,
    )
}

describe.skipIf(skipped !== null).each([...pythons])('the Python client under Python %s', (_, python) => {
  let directory: string

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'berth-python-client-'))
    await installPythonClient(join(directory, 'venv'), python)
    cpSync(join(import.meta.dir, 'python'), directory, {
      recursive: true,
      filter: (path) => !path.endsWith('__pycache__'),
    })
    cpSync(join(ROOT, 'src/clients/operations.json'), join(directory, 'operations.json'))
  }, PATIENCE_MS)

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  // Runs that the suite starts leave their directories there, too.
  const place = () => ['env', `PYTEST_DEBUG_TEMPROOT=${directory}`]
  const pytest = (...files: string[]) =>
    runSuite(
      [...place(), 'venv/bin/python', '-m', 'pytest', '-v', '-p', 'no:cacheprovider', ...files],
      directory,
    )

  test.concurrent(
    'makes every call, and knows every field and method',
    async () => {
      const ended = await pytest('test_calls.py', 'test_async.py', 'test_in_step.py')
      expectEveryCall(ended, /test_calls\.py::test_(\w+) PASSED/g)
      expect(ended.output).not.toContain('skipped')
    },
    PATIENCE_MS,
  )

  if (python === 'python3')
    test.concurrent(
      'has its rules and its part for tests',
      async () => {
        const { exitCode, output } = await pytest('test_rules.py', 'test_testing.py')
        expect(`exit code ${exitCode}\n${output}`).toStartWith('exit code 0\n')
        expect(output).not.toContain('skipped')
      },
      PATIENCE_MS,
    )
})
