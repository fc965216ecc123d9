/**
 * Runs everything that checks berth and prints, last, one line: `N passed, N failed, N skipped`, with
 * the reason of every skip above it. With --source-only the tests against the executable are left out.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const reports = join(root, 'node_modules/.cache/reports')
const sourceOnly = process.argv.includes('--source-only')
const bin = (name: string) => join(root, 'node_modules/.bin', name)

const total = { passed: 0, failed: 0, failures: [] as string[], skipped: new Set<string>() }

/** Runs a program with its output shown; resolves to whether it succeeded. */
function run(title: string, command: string[], env: Record<string, string> = {}): boolean {
  console.log(`\n— ${title}`)
  const { exitCode } = Bun.spawnSync(command, {
    cwd: root,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
    env: { ...process.env, ...env },
  })
  return exitCode === 0
}

/** A check that passes or fails as a whole. */
function check(title: string, command: string[]): void {
  if (run(title, command)) total.passed += 1
  else {
    total.failed += 1
    total.failures.push(title)
  }
}

/** Test files, counted by the report that the runner writes. */
function suite(title: string, paths: string[], env: Record<string, string> = {}): void {
  const report = join(reports, `${title.replaceAll(/\W+/g, '-')}.xml`)
  rmSync(report, { force: true })
  const command = [
    process.execPath,
    'test',
    '--timeout',
    '60000',
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ]
  const succeeded = run(title, [...command, ...paths], env)
  const counted = count(report)
  total.passed += counted.passed
  total.failed += counted.failed.length
  total.failures.push(...counted.failed)
  for (const name of counted.skipped) total.skipped.add(name)
  // A file that cannot be loaded fails no test of its own.
  if (!succeeded && counted.failed.length === 0) {
    total.failed += 1
    total.failures.push(title)
  }
}

function count(report: string): { passed: number; failed: string[]; skipped: string[] } {
  let xml: string
  try {
    xml = readFileSync(report, 'utf8')
  } catch {
    return { passed: 0, failed: [], skipped: [] }
  }
  const counted = { passed: 0, failed: [] as string[], skipped: [] as string[] }
  for (const [, attributes = '', inner = ''] of xml.matchAll(
    /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const name = unescapeXml(/\bname="([^"]*)"/.exec(attributes)?.[1] ?? '?')
    if (inner.includes('<failure') || inner.includes('<error')) counted.failed.push(name)
    else if (inner.includes('<skipped')) counted.skipped.push(name)
    else counted.passed += 1
  }
  return counted
}

const unescapeXml = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&')

mkdirSync(reports, { recursive: true })
check('format and lint', [bin('biome'), 'ci', '--error-on-warnings', '.'])
check('types', [bin('tsc')])
suite('tests from source', ['test'])
if (!sourceOnly) {
  check('build', [process.execPath, 'scripts/build.ts'])
  suite(
    'tests against the executable',
    ['test/http', 'test/resources', 'test/compute', 'test/cli', 'test/e2e'],
    {
      BERTH_TEST_EXECUTABLE: join(root, 'dist/berth'),
    },
  )
}

console.log('')
for (const name of total.failures) console.log(`failed: ${name}`)
for (const name of total.skipped) console.log(`skipped: ${name}`)
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped.size} skipped`)
process.exit(total.failed === 0 ? 0 : 1)
