/**
 * Checks berth and prints, last, one line: `N passed, N failed, N skipped`. Above it are the names of failed tests, of those
 * that passed at a second try only and of skipped ones with the reasons, the slowest files, and the time that each part took.
 * The report of a failure is shown as it comes, below the name of its file.
 *
 *     scripts/test            everything: each test once, from source or against the executable
 *     scripts/test PATH…      test files, or all in a directory, each as it runs in the whole
 *     scripts/test --all      everything: each test from source, and against the executable if it can be, and what is tried
 *                             at random as often as in CI
 *     scripts/test --engines  runs servers on Docker engines and clusters that the tests start, and test/e2e on both; with
 *                             --all also what of it takes long
 *     scripts/test --release  builds a release, and installs it in each way in which it can be here
 *     scripts/check           format, lint, types, and the tests that run from source
 */
import { join } from 'node:path'
import { ELSEWHERE, ProvidedCompute } from './suite/elsewhere.ts'
import { CRASHED, runTests, type TestResult, type TestRun, WORKERS } from './suite/runner.ts'
import {
  everyCombination,
  everyFileOnce,
  filesAt,
  filesElsewhere,
  root,
  type TestFiles,
} from './suite/test-files.ts'

/** In CI, where files run side by side and other work may have the machine too, failures in at most this many files are tried once more, alone. */
const SECOND_LOOKS = process.env.CI ? 8 : 0

/** Rows of the table of slow files. */
const SLOWEST = 12

/** How many files from source run beside those against the executable. */
const BESIDE = 2

/** How many files that install a release run beside each other: each unpacks and hashes hundreds of megabytes. */
const RELEASES = 2

/** What the parts of `--engines` may take on two idle processors, in minutes. */
const BUDGET_MINUTES = { engines: 20, docker: 5, kubernetes: 11 } as const

/** The files whose tests use the packages of the clients. */
const USERS_OF_CLIENTS = /^test\/(?:clients\/|examples\/suites)/

/** What is said of a file in the place of a test's name if it could not be loaded. */
const UNTESTED = 'none of its tests ran'

/** The systems of the release that is tested: this one, one that is emulated here, and one of which files are examined. */
const TESTED_TARGETS = 'linux-x64,linux-arm64,darwin-arm64'

const flags = process.argv.slice(2).filter((one) => one.startsWith('--'))
const paths = process.argv.slice(2).filter((one) => !one.startsWith('--'))
const unknown = flags.find((flag) => !['--all', '--source-only', '--engines', '--release'].includes(flag))
if (unknown !== undefined)
  fail(`scripts/test knows no ${unknown}: give it nothing, --all, --engines, --release, or paths of tests.`)
const isAll = flags.includes('--all')
if (flags.includes('--engines')) paths.push('test/engines')
if (flags.includes('--release')) paths.push('test/release')

const total = {
  passed: 0,
  failures: [] as string[],
  skipped: new Set<string>(),
  reasons: new Set<string>(),
  unsteady: [] as string[],
  fileTimes: [] as [file: string, milliseconds: number][],
  parts: [] as { title: string; seconds: number; budgetMinutes?: number }[],
}

/** Runs a program that passes or fails as a whole. Shows what it prints when it has ended, since others run beside it. */
async function check(title: string, command: string[], env: Record<string, string> = {}): Promise<void> {
  const began = performance.now()
  const options = { cwd: root, env: { ...process.env, ...env }, stdin: 'ignore' } as const
  const child = Bun.spawn(command, { ...options, stdout: 'pipe', stderr: 'pipe' })
  const [exitCode, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ])
  console.log(`\n— ${title}\n${stdout}${stderr}`)
  total.parts.push({ title, seconds: (performance.now() - began) / 1_000 })
  if (exitCode === 0) total.passed += 1
  else total.failures.push(title)
}

/**
 * Checks what needs no test. Of types each further checker would work out most of the routes' types once more. What types
 * were found is kept, and a run after which nothing has changed takes a second.
 */
async function checkText(): Promise<void> {
  const bin = (name: string) => join(root, 'node_modules/.bin', name)
  await check('format and lint', [bin('biome'), 'ci', '--error-on-warnings', '.'])
  const typed = async (name: string, project: string): Promise<void> => {
    const kept = ['--incremental', '--tsBuildInfoFile', join(root, `dist/tests/${name}.tsbuildinfo`)]
    // With a quarter as many garbage collections it takes less of a processor, and a fifth more memory.
    await check(name, [bin('tsc'), '--project', project, '--checkers', '1', ...kept], { GOGC: '400' })
  }
  await typed('types', '.')
  await typed('types of the dashboard', 'src/dashboard')
  await typed('types of the reference', 'src/contract/reference/browser')
}

/** Test files that run in one way, side by side. */
interface Suite {
  title: string
  files: readonly string[]
  env: Record<string, string>
  workers: number
  /** What it may take with all of its files, unless `--all` is given. */
  budgetMinutes?: number
}

/** Runs test files if there are any. */
async function start({ title, files, env, workers, budgetMinutes }: Suite): Promise<TestRun | null> {
  if (files.length === 0) return null
  console.log(`\n— ${title}`)
  const run = await runTests(title.replaceAll(/\W+/g, '-'), files, env, workers)
  total.parts.push({ title, seconds: run.seconds, ...(isAll ? {} : { budgetMinutes }) })
  return run
}

/** Notes what a run came to. Runs its files a second time that failed if they are few, so all other runs have to be over. */
async function take(suite: Suite, run: TestRun): Promise<void> {
  const { title, files } = suite
  for (const file of files) total.fileTimes.push([file, run.fileTimes[file] ?? 0])
  for (const reason of run.reasons) total.reasons.add(reason)

  const failed = run.results.filter(({ outcome }) => outcome === 'failed')
  for (const { name, outcome } of run.results) {
    if (outcome === 'passed') total.passed += 1
    if (outcome === 'skipped') total.skipped.add(name)
  }
  // A file that cannot be loaded has no test that could fail.
  const tested = new Set(run.results.map(({ file }) => file))
  for (const file of files) if (!tested.has(file)) failed.push({ file, name: UNTESTED, outcome: 'failed' })
  if (!run.succeeded && failed.length === 0) total.failures.push(`${title}: an error outside of all tests`)

  const isSteady = await secondLook(suite, failed)
  // A test that failed may have left something. Whether it does when it passes, the second look shows.
  takeLeftovers(title, run, failed.length > 0 && failed.every(isSteady))
  for (const one of failed) {
    if (isSteady(one)) {
      total.passed += 1
      total.unsteady.push(`${one.file}: ${one.name}`)
    } else total.failures.push(`${one.file}: ${one.name}`)
  }
}

/** Runs the files of failed tests alone if they are few; resolves to whether a test passes there. */
async function secondLook(
  { title, env }: Suite,
  failed: readonly TestResult[],
): Promise<(one: TestResult) => boolean> {
  const files = [...new Set(failed.map(({ file }) => file))]
  if (files.length > SECOND_LOOKS) return () => false
  const again = `${title}, a second look at what failed`
  const run = await start({ title: again, files, env, workers: 1 })
  if (run === null) return () => false
  takeLeftovers(again, run, false)
  return ({ file, name }) => {
    const ofFile = run.results.filter((one) => one.file === file)
    if (name === CRASHED || name === UNTESTED)
      return ofFile.length > 0 && ofFile.every(({ outcome }) => outcome !== 'failed')
    const found = ofFile.filter((one) => one.name === name)
    return found.length > 0 && found.every(({ outcome }) => outcome === 'passed')
  }
}

/**
 * Notes what a run left behind.
 *
 * @param isExcused whether some of its tests failed, and all that failed passed at the second look
 */
function takeLeftovers(title: string, { leftovers }: TestRun, isExcused: boolean): void {
  if (leftovers.length === 0 || isExcused) total.passed += 1
  const list = isExcused ? total.unsteady : total.failures
  for (const leftover of leftovers) list.push(`${title} left behind ${leftover}`)
}

/** Runs test/e2e with its servers on an engine or a cluster of the tests' own. */
async function runElsewhere(compute: (typeof ELSEWHERE)[number]): Promise<void> {
  const title = `test/e2e with --compute ${compute}`
  try {
    await using provided = await ProvidedCompute.start(compute, executablePath)
    if (provided.variables === null) {
      total.reasons.add(`SKIP ${title}: ${provided.missing}`)
      return
    }
    const suite: Suite = {
      title,
      files: filesElsewhere(compute, isAll),
      env: { ...ofExecutable.env, ...provided.variables },
      workers: 1,
      budgetMinutes: BUDGET_MINUTES[compute],
    }
    const run = await start(suite)
    if (run !== null) await take(suite, run)
  } catch (error) {
    total.failures.push(`${title}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Returns how long something took, as minutes and seconds. */
const clock = (seconds: number): string =>
  `${Math.floor(Math.round(seconds) / 60)}:${String(Math.round(seconds) % 60).padStart(2, '0')}`

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}

function selected(): TestFiles {
  if (paths.length === 0) return isAll ? everyCombination() : everyFileOnce()
  try {
    return filesAt(paths)
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error))
  }
}

const files = selected()
const againstExecutable = flags.includes('--source-only') ? [] : files.executable
/** Makes tests try as often as in CI what they try at random. */
const thorough: Record<string, string> = isAll ? { BERTH_TEST_THOROUGH: '1' } : {}
/**
 * Files from source take an eighth of a whole run. Two more workers get through them while the others have begun with the
 * rest, so that no processor is without work while the last of them ends.
 */
const isBeside = againstExecutable.length > 0 && !isAll
const fromSource: Suite = {
  title: 'tests from source',
  files: files.source,
  env: thorough,
  workers: isBeside ? BESIDE : WORKERS,
}
const executablePath = join(root, 'dist/berth')
const ofExecutable: Suite = {
  title: 'tests against the executable',
  files: againstExecutable,
  env: { BERTH_TEST_EXECUTABLE: executablePath, ...thorough },
  workers: WORKERS,
}
/** One file at a time: what they start takes both processors of a small machine. */
const ofEngines: Suite = {
  title: 'tests on engines',
  files: files.engines,
  env: ofExecutable.env,
  workers: 1,
  budgetMinutes: BUDGET_MINUTES.engines,
}
const ofRelease: Suite = {
  title: 'tests of a release',
  files: files.release,
  env: { BERTH_TEST_RELEASE: join(root, 'dist/release') },
  workers: RELEASES,
}
// Beside the tests from source, since many of these wait for time to pass.
const text = paths.length === 0 ? checkText() : null
const built =
  againstExecutable.length + ofEngines.files.length > 0
    ? check('build', [process.execPath, 'scripts/build.ts'])
    : null
// Several files want them at the same time, and fetching their tools beside other tests of the network has failed.
const clients = againstExecutable.some((file) => USERS_OF_CLIENTS.test(file))
  ? check('clients', [join(root, 'scripts/clients')])
  : null
const source = start(fromSource)
await Promise.all([built, clients, isBeside ? null : source])
const executable = start(ofExecutable)
for (const [suite, ended] of [
  [fromSource, await source],
  [ofExecutable, await executable],
] as const) {
  if (ended !== null) await take(suite, ended)
}
const engines = await start(ofEngines)
if (engines !== null) await take(ofEngines, engines)
if (flags.includes('--engines')) for (const compute of ELSEWHERE) await runElsewhere(compute)
if (ofRelease.files.length > 0) {
  // Only an engine runs the image.
  const image = process.getuid?.() === 0 && Bun.which('dockerd') !== null ? ['--image'] : []
  await check('release', [join(root, 'scripts/release'), '--only', TESTED_TARGETS, ...image])
  const release = await start(ofRelease)
  if (release !== null) await take(ofRelease, release)
}
await text

console.log('')
for (const reason of total.reasons) console.log(reason)
for (const name of total.skipped) console.log(`skipped: ${name}`)
console.log('\nThe slowest files, each with others beside it:')
for (const [file, ms] of total.fileTimes.sort(([, one], [, other]) => other - one).slice(0, SLOWEST))
  console.log(`${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}`)
console.log('\nTime:')
for (const { title, seconds, budgetMinutes } of total.parts) {
  const budget = budgetMinutes === undefined ? '' : ` (budget ${budgetMinutes}:00)`
  console.log(`${clock(seconds).padStart(7)}  ${title}${budget}`)
}
console.log(`${clock(performance.now() / 1_000).padStart(7)}  in all\n`)
for (const name of total.unsteady) console.log(`unsteady: ${name} (not when tried again)`)
for (const name of total.failures) console.log(`failed: ${name}`)
console.log(`${total.passed} passed, ${total.failures.length} failed, ${total.skipped.size} skipped`)
process.exit(total.failures.length === 0 ? 0 : 1)
