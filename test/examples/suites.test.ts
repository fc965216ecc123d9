import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage } from '../clients/suite.ts'
import { copyOf, EXAMPLES, SUITES } from './suites.ts'

/** The registry that packages come from, as npm is set up here. */
const REGISTRY = Bun.spawnSync(['npm', 'config', 'get', 'registry']).stdout.toString().trim()

const reachable = await fetch(`${REGISTRY.replace(/\/$/, '')}/vitest`, {
  method: 'HEAD',
  signal: AbortSignal.timeout(10_000),
}).then(
  (response) => response.ok,
  () => false,
)
// In CI a suite that cannot be installed is a failure, and no reason to pass it over.
const mayInstall = reachable || Boolean(process.env.CI)
if (!mayInstall)
  console.error(`SKIP: suites with packages, since the registry of npm (${REGISTRY}) does not answer`)

// The clients are built once for all suites that use them.
const clientsMissing = {
  typescript: await buildPackage('typescript'),
  python: await buildPackage('python'),
}
for (const reason of Object.values(clientsMissing))
  if (reason) console.error(`${reason} The suites that use it are skipped.`)

/** How long the installation of a runner and two runs may take on a busy machine. */
const PATIENCE_MS = 240_000

describe('examples of test suites', () => {
  test('every folder is run here', () => {
    expect(readdirSync(EXAMPLES).sort()).toEqual(SUITES.map(({ name }) => name).sort())
  })

  for (const suite of SUITES) {
    const { name, command, needs, packages, client, passed, defect } = suite
    const missing = needs !== undefined && Bun.which(needs) === null
    if (missing) console.error(`SKIP: the example ${name}, since ${needs} is not installed`)
    const cannotInstall = (packages && !mayInstall) || (client && clientsMissing[client] !== null)
    test.skipIf(missing || cannotInstall === true)(
      `${name} passes, and fails where what it tests is broken`,
      async () => {
        using copy = copyOf(name)
        if (packages || client) await copy.install(suite)
        const { exitCode, output } = await copy.run(command)
        expect(`exit code ${exitCode}\n${output}`).toStartWith('exit code 0\n')
        expect([output.match(passed.pattern)?.length, output]).toEqual([passed.count, output])

        copy.change(defect.file, defect.from, defect.to)
        const broken = await copy.run([...command, ...defect.only])
        expect(broken.output).toMatch(defect.noticed)
        expect(broken.exitCode).not.toBe(0)
      },
      PATIENCE_MS,
    )
  }

  test('the product is the same whatever runs the tests', () => {
    const text = (path: string) => readFileSync(join(EXAMPLES, path), 'utf8')
    for (const other of ['jest', 'bun-test'])
      expect(text(`${other}/reports.js`)).toBe(text('vitest/reports.js'))
    expect(text('pytest/reports.py')).toBe(text('python-unittest/reports.py'))
  })
})
