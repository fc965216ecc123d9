/**
 * Runs everything that checks berth and prints, last, one line: `N passed, N failed, N skipped`, with
 * the reason of every skip above it. With --source-only the tests against the executable are left out.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const reports = join(root, 'node_modules/.cache/reports')
const sourceOnly = process.argv.includes('--source-only')
const bin = (name: string) => join(root, 'node_modules/.bin', name)

const total = {
  passed: 0,
  failed: 0,
  failures: [] as string[],
  reports: [] as string[],
  skipped: new Set<string>(),
}

/** Lines of a failed test's report that the end of the output repeats. */
const REPEATED_LINES = 60

/** Runs a program with its output shown; resolves to whether it succeeded and what it said on stderr. */
async function run(title: string, command: string[], env: Record<string, string> = {}) {
  console.log(`\n— ${title}`)
  const child = Bun.spawn(command, {
    cwd: root,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'pipe',
    env: { ...process.env, ...env },
  })
  const decoder = new TextDecoder()
  let said = ''
  for await (const chunk of child.stderr) {
    process.stderr.write(chunk)
    said += decoder.decode(chunk, { stream: true })
  }
  return { succeeded: (await child.exited) === 0, said }
}

/** What the runner said of each failed test: the lines between the result before and its own. */
function reportsOf(said: string): string[] {
  const reports: string[] = []
  let lines: string[] = []
  for (const line of said.split('\n')) {
    // Failures are listed once more, by their names alone.
    if (/^\d+ tests? failed:/.test(line)) break
    lines.push(line)
    if (/^\(fail\)/.test(line)) reports.push(lines.slice(-REPEATED_LINES).join('\n'))
    if (/^\((?:pass|fail|skip|todo)\)|\.test\.ts:$/.test(line)) lines = []
  }
  return reports
}

/** A check that passes or fails as a whole. */
async function check(title: string, command: string[]): Promise<void> {
  if ((await run(title, command)).succeeded) total.passed += 1
  else {
    total.failed += 1
    total.failures.push(title)
  }
}

/** Test files, counted by the report that the runner writes. */
async function suite(title: string, paths: string[], env: Record<string, string> = {}): Promise<void> {
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
  const { succeeded, said } = await run(title, [...command, ...paths], env)
  total.reports.push(...reportsOf(said))
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
await check('format and lint', [bin('biome'), 'ci', '--error-on-warnings', '.'])
await check('types', [bin('tsc')])
// Whole lives of the service are tried on the executable, where there is one: once is enough for what takes long.
const lives = ['e2e', 'examples']
const parts = readdirSync(join(root, 'test')).filter((name) => sourceOnly || !lives.includes(name))
await suite(
  'tests from source',
  parts.filter((name) => name !== 'support').map((name) => `test/${name}`),
)
if (!sourceOnly) {
  await check('build', [process.execPath, 'scripts/build.ts'])
  await suite(
    'tests against the executable',
    [
      'test/http',
      'test/resources',
      'test/control',
      'test/events',
      'test/compute',
      'test/cli',
      'test/signin',
      'test/mcp',
      ...lives.map((name) => `test/${name}`),
    ],
    {
      BERTH_TEST_EXECUTABLE: join(root, 'dist/berth'),
    },
  )
}

console.log('')
// Repeated here, where whoever sees only the end of a long output finds them.
for (const report of total.reports) console.log(`${report}\n`)
for (const name of total.failures) console.log(`failed: ${name}`)
for (const name of total.skipped) console.log(`skipped: ${name}`)
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped.size} skipped`)
process.exit(total.failed === 0 ? 0 : 1)
