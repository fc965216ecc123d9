/**
 * Runs everything that checks berth and prints, last, one line: `N passed, N failed, N skipped`, with
 * the reason of every skip above it, and what passed at a second try alone. With --source-only the tests against the executable are left out.
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
  unsteady: [] as string[],
}

/** In CI, where other work has the machine too, failures in so few files are looked at a second time. */
const SECOND_LOOKS = process.env.CI ? 2 : 0

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

/** A test of a suite, by its file and its name. */
interface Result {
  readonly file: string
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
}

/** Test files, counted by the report that the runner writes. */
async function suite(title: string, paths: string[], env: Record<string, string> = {}): Promise<void> {
  const { succeeded, said, results } = await runTests(title, paths, env)
  total.reports.push(...reportsOf(said))
  const namesOf = (outcome: Result['outcome']) =>
    results.filter((one) => one.outcome === outcome).map(({ name }) => name)
  total.passed += namesOf('passed').length
  for (const name of namesOf('skipped')) total.skipped.add(name)
  const failed = results.filter(({ outcome }) => outcome === 'failed')
  // A file that cannot be loaded fails no test of its own.
  if (!succeeded && failed.length === 0) {
    total.failed += 1
    total.failures.push(title)
  }
  const steady = await secondLook(title, failed, env)
  for (const one of failed) {
    if (steady(one)) {
      total.passed += 1
      total.unsteady.push(`${one.file}: ${one.name}`)
    } else {
      total.failed += 1
      total.failures.push(one.name)
    }
  }
}

/** Runs the files of what failed alone, where they are few; resolves to whether a test passes there. */
async function secondLook(
  title: string,
  failed: Result[],
  env: Record<string, string>,
): Promise<(one: Result) => boolean> {
  const files = [...new Set(failed.map(({ file }) => file))]
  if (files.length === 0 || files.length > SECOND_LOOKS) return () => false
  const { results } = await runTests(`${title}, a second look at what failed`, files, env)
  return ({ file, name }) => {
    const again = results.filter((one) => one.file === file && one.name === name)
    return again.length > 0 && again.every(({ outcome }) => outcome === 'passed')
  }
}

async function runTests(title: string, paths: string[], env: Record<string, string>) {
  const report = join(reports, `${title.replaceAll(/\W+/g, '-')}.xml`)
  rmSync(report, { force: true })
  const reporter = ['--reporter=junit', `--reporter-outfile=${report}`]
  const command = [process.execPath, 'test', '--timeout', '60000', ...reporter]
  const ended = await run(title, [...command, ...paths], env)
  return { ...ended, results: resultsIn(report) }
}

function resultsIn(report: string): Result[] {
  let xml: string
  try {
    xml = readFileSync(report, 'utf8')
  } catch {
    return []
  }
  const cases = xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)
  return [...cases].map(([, attributes = '', inner = '']) => ({
    file: attribute(attributes, 'file'),
    name: attribute(attributes, 'name'),
    outcome: /<failure|<error/.test(inner) ? 'failed' : inner.includes('<skipped') ? 'skipped' : 'passed',
  }))
}

const attribute = (attributes: string, name: string): string =>
  unescapeXml(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '?')

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
for (const name of total.unsteady)
  console.log(`unsteady: ${name} (failed above, and passed when tried again)`)
for (const name of total.skipped) console.log(`skipped: ${name}`)
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped.size} skipped`)
process.exit(total.failed === 0 ? 0 : 1)
