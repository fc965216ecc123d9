/**
 * Checks berth and prints, last, one line: `N passed, N failed, N skipped`. Above it stand the report of each failed test,
 * what passed at a second try only, the reason of each skip, the slowest files, and the time that each part took.
 *
 *     scripts/test            everything: each test once, from source or against the executable
 *     scripts/test PATH…      test files, or all in a directory, each as it runs in the whole
 *     scripts/test --all      everything: each test from source, and against the executable if it can be, and what is tried
 *                             at random as often as in CI
 *     scripts/check           format, lint, types, and the tests that run from source
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { passedBefore, rememberPassed } from './suite/passed-before.ts'
import { root, runProgram } from './suite/programs.ts'
import { everyCombination, everyFileOnce, filesAt, type TestFiles } from './suite/test-files.ts'
import { CRASHED, runTests, type TestResult, type TestRun, WORKERS } from './suite/test-runner.ts'

/** In CI, where files run side by side and other work may have the machine too, failures in at most this many files are tried once more, alone. */
const SECOND_LOOKS = process.env.CI ? 8 : 0

/** Rows of the table of slow files. */
const SLOWEST = 12

/**
 * What a whole run may take before it fails on a machine without other work on which a process takes a millisecond, far
 * above the goals of 6 minutes for scripts/test and 2 for scripts/check on two processors. Other work makes a run longer.
 * Its processor time grows, too, by half and more, where the other work is that of virtual machines which share the cores:
 * 14 and 24 minutes were measured for the same tests.
 */
const BUDGET = {
  test: { minutes: 24, processorMinutes: 36 },
  check: { minutes: 8, processorMinutes: 6 },
}

/** Milliseconds that a process takes to start and to end on the machine that the budgets are for. */
const USUAL_PROCESS_MS = 1

/**
 * Measures how many times as long a process takes here, at least 1. Tests mostly start processes, and there are virtual
 * machines on which that takes four times as long.
 */
function measureSlowness(): number {
  const taken = Array.from({ length: 31 }, () => {
    const began = performance.now()
    Bun.spawnSync(['sh', '-c', 'true'])
    return performance.now() - began
  })
  return Math.max(1, (taken.sort((one, other) => one - other)[15] ?? 0) / USUAL_PROCESS_MS)
}

/** How many times as long a run takes as on a machine without other work: processes per worker that want a processor. */
const busyness = (): number => Math.max(1, (loadavg()[1] ?? 0) / WORKERS)

/** Milliseconds since the machine's start that its processors had nothing to do, and all milliseconds that they had. */
function processorTimes(): { idle: number; all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const all = times.flatMap((one) => Object.values(one))
  return {
    idle: times.reduce((sum, one) => sum + one.idle, 0),
    all: all.reduce((sum, ms) => sum + ms, 0),
  }
}

const slowness = measureSlowness()
const begun = processorTimes()
const flags = process.argv.slice(2).filter((one) => one.startsWith('--'))
const paths = process.argv.slice(2).filter((one) => !one.startsWith('--'))
const unknown = flags.find((flag) => !['--all', '--source-only'].includes(flag))
if (unknown !== undefined)
  fail(`scripts/test knows no ${unknown}: give it nothing, --all, or paths of tests.`)
const sourceOnly = flags.includes('--source-only')

const total = {
  passed: 0,
  failures: [] as string[],
  reports: [] as string[],
  skipped: new Set<string>(),
  reasons: new Set<string>(),
  unsteady: [] as string[],
  files: [] as { file: string; seconds: number; processorSeconds: number }[],
  parts: [] as { title: string; seconds: number; processorSeconds: number }[],
}

/** Runs a program that passes or fails as a whole. Shows what it prints when it has ended, since others may run beside it. */
async function check(title: string, command: string[], env: Record<string, string> = {}): Promise<void> {
  const { succeeded, stdout, stderr, seconds, processorSeconds } = await runProgram(command, env, false)
  console.log(`\n— ${title}\n${stdout}${stderr}`)
  total.parts.push({ title, seconds, processorSeconds })
  if (succeeded) total.passed += 1
  else total.failures.push(title)
}

/** Test files that run in one way, side by side. */
interface Suite {
  title: string
  files: readonly string[]
  env: Record<string, string>
  workers: number
}

/** Runs test files if there are any. */
async function start({ title, files, env, workers }: Suite): Promise<TestRun | null> {
  if (files.length === 0) return null
  console.log(`\n— ${title}`)
  return runTests(title.replaceAll(/\W+/g, '-'), files, env, workers)
}

/** Notes what a run came to. Runs its files a second time that failed if they are few, so all other runs have to be over. */
async function take({ title, files, env }: Suite, run: TestRun): Promise<void> {
  takeTimes(title, run)
  for (const [file, seconds] of run.fileSeconds)
    total.files.push({ file, seconds, processorSeconds: run.fileProcessorSeconds.get(file) ?? 0 })
  total.reports.push(...run.reports)
  for (const reason of run.reasons) total.reasons.add(reason)

  const failed = run.results.filter(({ outcome }) => outcome === 'failed')
  for (const { name, outcome } of run.results) {
    if (outcome === 'passed') total.passed += 1
    if (outcome === 'skipped') total.skipped.add(name)
  }
  // A file that cannot be loaded has no test that could fail.
  const tested = new Set(run.results.map(({ file }) => file))
  const untested = files.filter((file) => !tested.has(file))
  for (const file of untested) total.failures.push(`${file}: none of its tests ran`)
  if (!run.succeeded && failed.length + untested.length === 0)
    total.failures.push(`${title}: an error outside of all tests`)

  const doubtful = new Set(run.results.filter(({ outcome }) => outcome !== 'passed').map(({ file }) => file))
  if (untested.length === 0) rememberPassed(files.filter((file) => !doubtful.has(file)))

  const isSteady = await secondLook(title, failed, env)
  // A test that failed may have left something. Whether it does when it passes, the second look shows.
  takeLeftovers(title, run, failed.length > 0 && failed.every(isSteady))
  for (const one of failed) {
    if (isSteady(one)) {
      total.passed += 1
      total.unsteady.push(`${one.file}: ${one.name}`)
    } else total.failures.push(`${one.file}: ${one.name}`)
  }
}

/** Leaves out what is slow and passed before, unless everything is asked for, or the file itself. */
function isLeftOut(file: string): boolean {
  if (process.env.CI || flags.includes('--all') || paths.length > 0 || !passedBefore(file)) return false
  total.skipped.add(`${file} (it passed with all that it depends on as it is now)`)
  return true
}

/** Runs the files of failed tests alone if they are few; resolves to whether a test passes there. */
async function secondLook(
  title: string,
  failed: TestResult[],
  env: Record<string, string>,
): Promise<(one: TestResult) => boolean> {
  const files = [...new Set(failed.map(({ file }) => file))]
  if (files.length === 0 || files.length > SECOND_LOOKS) return () => false
  const again = `${title}, a second look at what failed`
  console.log(`\n— ${again}`)
  const run = await runTests(again.replaceAll(/\W+/g, '-'), files, env, 1)
  takeTimes(again, run)
  takeLeftovers(again, run, false)
  return ({ file, name }) => {
    const ofFile = run.results.filter((one) => one.file === file)
    if (name === CRASHED) return ofFile.length > 0 && ofFile.every(({ outcome }) => outcome !== 'failed')
    const found = ofFile.filter((one) => one.name === name)
    return found.length > 0 && found.every(({ outcome }) => outcome === 'passed')
  }
}

/** Notes how long a run took. */
function takeTimes(title: string, { seconds, processorSeconds }: TestRun): void {
  total.parts.push({ title, seconds, processorSeconds })
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

/** Returns how long something took, as minutes and seconds. */
const clock = (seconds: number): string =>
  `${Math.floor(Math.round(seconds) / 60)}:${String(Math.round(seconds) % 60).padStart(2, '0')}`

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}

function selected(): TestFiles {
  if (paths.length === 0) return flags.includes('--all') ? everyCombination() : everyFileOnce()
  try {
    return filesAt(paths)
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error))
  }
}

const files = selected()
/** Makes tests try as often as in CI what they try at random. */
const thorough: Record<string, string> = flags.includes('--all') ? { BERTH_TEST_THOROUGH: '1' } : {}
/**
 * Checks that need no test. Of types each further checker would work out most of the routes' types once more. What types
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

const againstExecutable = sourceOnly ? [] : files.executable
// Beside the tests from source, since many of these wait for time to pass.
const text = paths.length === 0 ? checkText() : null
const built = againstExecutable.length > 0 ? check('build', [process.execPath, 'scripts/build.ts']) : null
/** How many files from source run beside those against the executable. */
const BESIDE = 2
const wanted = (all: readonly string[]): string[] => all.filter((file) => !isLeftOut(file))
/**
 * Files from source take an eighth of a whole run. Two more workers get through them while the others have begun with the
 * rest, so that no processor is without work while the last of them ends.
 */
const isBeside = againstExecutable.length > 0 && !flags.includes('--all')
const fromSource: Suite = {
  title: 'tests from source',
  files: wanted(files.source),
  env: thorough,
  workers: isBeside ? BESIDE : WORKERS,
}
const ofExecutable: Suite = {
  title: 'tests against the executable',
  files: wanted(againstExecutable),
  env: { BERTH_TEST_EXECUTABLE: join(root, 'dist/berth'), ...thorough },
  workers: WORKERS,
}
const source = start(fromSource)
await (isBeside ? built : Promise.all([built, source]))
const executable = start(ofExecutable)
for (const [suite, ended] of [
  [fromSource, await source],
  [ofExecutable, await executable],
] as const) {
  if (ended !== null) await take(suite, ended)
}
await text

const processorSeconds = total.parts.reduce((all, part) => all + part.processorSeconds, 0)
const taken = { minutes: performance.now() / 60_000, processorMinutes: processorSeconds / 60 }
// --all runs most of it twice, and a few files have no budget.
if (paths.length === 0 && !flags.includes('--all')) {
  const budget = BUDGET[sourceOnly ? 'check' : 'test']
  const minutes = Math.round(budget.minutes * slowness * busyness())
  const processorMinutes = Math.round(budget.processorMinutes * slowness)
  if (taken.minutes > minutes) total.failures.push(`it took more than ${minutes} minutes`)
  if (taken.processorMinutes > processorMinutes)
    total.failures.push(`it took more than ${processorMinutes} minutes of a processor`)
}

console.log('')
// Repeated here, where whoever sees only the end of a long output finds them.
for (const report of total.reports) console.log(`${report}\n`)
for (const reason of total.reasons) console.log(reason)
for (const name of total.skipped) console.log(`skipped: ${name}`)
console.log('\nThe slowest files, each with others beside it: time, and time of a processor:')
const slowest = total.files.sort((one, other) => other.seconds - one.seconds).slice(0, SLOWEST)
for (const { file, seconds, processorSeconds } of slowest)
  console.log(`${seconds.toFixed(1).padStart(7)} ${processorSeconds.toFixed(1).padStart(7)} s  ${file}`)
console.log('\nTime, and time of a processor:')
for (const { title, seconds, processorSeconds } of total.parts)
  console.log(`${clock(seconds).padStart(7)} ${clock(processorSeconds).padStart(7)}  ${title}`)
console.log(
  `${clock(taken.minutes * 60).padStart(7)} ${clock(taken.processorMinutes * 60).padStart(7)}  in all`,
)
const ended = processorTimes()
const idle = (ended.idle - begun.idle) / (ended.all - begun.all || 1)
console.log(`The processors had nothing to do for ${Math.round(idle * 100)} % of it.`)
if (slowness > 1)
  console.log(`A process took ${slowness.toFixed(1)} times as long as on the machine that the budget is for.`)
console.log('')
for (const name of total.unsteady) console.log(`unsteady: ${name} (not when tried again)`)
for (const name of total.failures) console.log(`failed: ${name}`)
console.log(`${total.passed} passed, ${total.failures.length} failed, ${total.skipped.size} skipped`)
process.exit(total.failures.length === 0 ? 0 : 1)
