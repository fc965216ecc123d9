import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withOwner } from '../../scripts/packaging/owner.ts'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { temporaryFolder } from '../cli/command.ts'
import { installPythonClient, unpackClient } from '../clients/suite.ts'
import { installedPackages } from '../support/packages.ts'
import { command as berth, cleanEnvironment } from '../support/serve.ts'

/** Where the suites lie that users copy. */
export const EXAMPLES = join(import.meta.dir, '../../docs/examples')

/** A suite of the documentation. */
export interface Suite {
  /** Its folder. */
  name: string
  /** What runs it, as the documentation says, with more patience than a runner has on a busy machine. */
  command: readonly string[]
  /** A program that it needs beside berth. */
  needs?: string
  /** It installs its runner with npm. */
  packages?: true
  /** It uses the client for a language. */
  client?: 'typescript' | 'python'
  /** What its output has once for each test that passed, and how many pass. */
  passed: { pattern: RegExp; count: number }
  /**
   * A change to what is tested that a test must notice, what its output says then, and the arguments by which the command
   * runs little more than that test: a whole run passed before.
   */
  defect: { file: string; from: string; to: string; noticed: RegExp; only: readonly string[] }
}

/** The product gives up at once where it should try again. */
const NO_SECOND_ATTEMPT = {
  file: 'reports.js',
  from: 'const ATTEMPTS = 2',
  to: 'const ATTEMPTS = 1',
  only: ['test/refusals.test.js'],
}

const NO_SECOND_ATTEMPT_IN_PYTHON = {
  file: 'reports.py',
  from: 'ATTEMPTS = 2',
  to: 'ATTEMPTS = 1',
  only: ['-k', 'test_502'],
}

/** All of them. */
export const SUITES: readonly Suite[] = [
  {
    name: 'bun-test',
    command: ['npm', 'test', '--', '--timeout=60000'],
    client: 'typescript',
    passed: { pattern: /^\(pass\)/gm, count: 8 },
    defect: { ...NO_SECOND_ATTEMPT, noticed: /\(fail\) 502: a backend that fails once/ },
  },
  {
    name: 'vitest',
    command: ['npm', 'test', '--', '--testTimeout=60000'],
    packages: true,
    client: 'typescript',
    passed: { pattern: /Tests +8 passed \(8\)/g, count: 1 },
    defect: { ...NO_SECOND_ATTEMPT, noticed: /502: a backend that fails once/ },
  },
  {
    name: 'jest',
    command: ['npm', 'test', '--', '--testTimeout=60000'],
    packages: true,
    client: 'typescript',
    passed: { pattern: /Tests: +8 passed, 8 total/g, count: 1 },
    defect: { ...NO_SECOND_ATTEMPT, noticed: /● 502: a backend that fails once/ },
  },
  {
    name: 'playwright',
    // Two workers show that tests run beside each other; to load the runner takes most of a worker's time.
    command: ['npm', 'test', '--', '--timeout=60000', '--workers=2'],
    packages: true,
    client: 'typescript',
    passed: { pattern: /7 passed/g, count: 1 },
    defect: {
      file: 'test/api.test.js',
      from: "result: 'All is well.'",
      to: "result: 'All is lost.'",
      noticed: /1 failed/,
      only: ['test/api.test.js', '--grep=a task comes to its end'],
    },
  },
  {
    name: 'python-unittest',
    command: ['berth', 'run', '--allow-local-webhooks', '--', 'python3', '-m', 'unittest', '-v'],
    needs: 'python3',
    client: 'python',
    passed: { pattern: /\.\.\. ok$/gm, count: 7 },
    defect: {
      ...NO_SECOND_ATTEMPT_IN_PYTHON,
      noticed: /ERROR: test_502_a_backend_that_fails_once/,
    },
  },
  {
    name: 'pytest',
    command: ['berth', 'run', '--allow-local-webhooks', '--', 'python3', '-m', 'pytest', '-v'],
    needs: 'python3',
    client: 'python',
    passed: { pattern: / PASSED /g, count: 7 },
    defect: {
      ...NO_SECOND_ATTEMPT_IN_PYTHON,
      noticed: /FAILED test_reports\.py::test_502_a_backend_that_fails_once/,
    },
  },
  {
    name: 'shell',
    command: ['berth', 'run', '--allow-local-webhooks', '--', 'sh', 'test.sh'],
    needs: 'curl',
    passed: { pattern: /^ok it_/gm, count: 6 },
    defect: {
      file: 'preview.sh',
      from: 'create || create',
      to: 'create',
      noticed: /^not ok it_tries_again/m,
      only: [],
    },
  },
]

/** A copy of a suite, with `berth` and `bun` on its PATH. */
export interface Copy extends Disposable {
  /** Changes a file. @throws Error where what is to be changed is not there exactly once */
  change(file: string, from: string, to: string): void
  /** Gives it the packages that it needs. @throws Error with what npm said where they cannot be installed */
  install(needed: Pick<Suite, 'packages' | 'client'>): Promise<void>
  run(command: readonly string[]): Promise<{ exitCode: number; output: string }>
}

/** Copies a suite into a folder that is gone after the test. */
export function copyOf(name: string): Copy {
  const folder = temporaryFolder()
  const suite = join(folder.path, 'suite')
  const bin = join(folder.path, 'bin')
  const environmentOfPython = join(folder.path, 'venv')
  cpSync(join(EXAMPLES, name), suite, { recursive: true })
  for (const path of new Bun.Glob('test/*.js').scanSync(suite)) {
    const file = join(suite, path)
    writeFileSync(file, withOwner(readFileSync(file, 'utf8')))
  }
  mkdirSync(bin)
  writeFileSync(join(bin, 'berth'), `#!/bin/sh\nexec ${shellQuote(berth)} "$@"\n`)
  chmodSync(join(bin, 'berth'), 0o755)
  symlinkSync(process.execPath, join(bin, 'bun'))
  const environment = cleanEnvironment()
  return {
    change(file, from, to) {
      const path = join(suite, file)
      const parts = readFileSync(path, 'utf8').split(from)
      if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times ${from}`)
      writeFileSync(path, parts.join(to))
    },
    async install({ packages = false, client }) {
      if (client === 'python') return installPythonClient(environmentOfPython)
      const modules = join(suite, 'node_modules')
      mkdirSync(modules)
      if (packages) {
        const installed = await installedPackages(join(EXAMPLES, name))
        for (const entry of readdirSync(installed)) symlinkSync(join(installed, entry), join(modules, entry))
      }
      if (client === 'typescript') unpackClient(modules)
    },
    async run(command) {
      const child = Bun.spawn([...command], {
        cwd: suite,
        env: {
          ...environment,
          PATH: `${bin}:${environmentOfPython}/bin:${environment.PATH}`,
          // Runners keep what they translated there.
          TMPDIR: folder.path,
          // The reports of runs that fail.
          XDG_STATE_HOME: join(folder.path, 'state'),
          NO_COLOR: '1',
          FORCE_COLOR: undefined,
          // By it Playwright believes that it runs inside Jest, and refuses.
          JEST_WORKER_ID: undefined,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const [out, error, exitCode] = await Promise.all([
        child.stdout.text(),
        child.stderr.text(),
        child.exited,
      ])
      return { exitCode, output: out + error }
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}
