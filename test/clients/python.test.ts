import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  buildPackage,
  expectEveryCall,
  installPythonClient,
  PATIENCE_MS,
  ROOT,
  run,
  runSuite,
} from './suite.ts'

/** The default Python, which runs the whole suite, and those that run the calls too where they are installed. */
const PYTHONS = ['python3', 'python3.10', 'python3.13', 'python3.14']

const skipped = await buildPackage('python')
if (skipped) console.error(skipped)

/** Versions by the program that runs them, each version once. */
const pythons = new Map<string, string>()
if (!skipped)
  for (const python of PYTHONS) {
    const { exitCode, output } = await run([python, '--version'], { cwd: tmpdir() }).catch(() => ({
      exitCode: 127,
      output: '',
    }))
    const version = /^Python (3\.\d+)/.exec(output)?.[1]
    if (exitCode === 0 && version && !pythons.has(version)) pythons.set(version, python)
    else if (exitCode !== 0) console.error(`SKIP: the Python client under ${python}, which is not installed.`)
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

  test(
    'makes every call, and knows every field and method',
    async () => {
      const files = python === 'python3' ? [] : ['test_calls.py', 'test_async.py', 'test_in_step.py']
      // Runs that the suite starts leave their directories there, too.
      const place = ['env', `PYTEST_DEBUG_TEMPROOT=${directory}`]
      const suite = [...place, 'venv/bin/python', '-m', 'pytest', '-v', '-p', 'no:cacheprovider', ...files]
      const ended = await runSuite(suite, directory)
      expectEveryCall(ended, /test_calls\.py::test_(\w+) PASSED/g)
      expect(ended.output).not.toContain('skipped')
    },
    PATIENCE_MS,
  )
})
