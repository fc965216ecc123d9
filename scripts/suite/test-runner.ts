import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { TemporaryDirectory } from './leftovers.ts'
import { root, runProgram } from './programs.ts'
import SLOW_FILES from './slow-files.json'

/** A test with how it ended. */
export interface TestResult {
  readonly file: string
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
}

/** The name under which Bun reports a file whose process has ended before its tests did. */
export const CRASHED = '(worker crashed)'

/** What a run of test files came to. */
export interface TestRun {
  readonly succeeded: boolean
  readonly results: readonly TestResult[]
  /** What the runner printed of each failure. */
  readonly reports: readonly string[]
  /** The lines in which tests say why they are skipped. */
  readonly reasons: readonly string[]
  /** Seconds that each file took, while others ran beside it. */
  readonly fileSeconds: ReadonlyMap<string, number>
  /** Seconds of a processor that each file used, with the processes that it waited for. */
  readonly fileProcessorSeconds: ReadonlyMap<string, number>
  /** Files and processes that were there when all tests had ended. */
  readonly leftovers: readonly string[]
  readonly seconds: number
  readonly processorSeconds: number
}

/**
 * What a test may take. It is long because after one that takes longer, the runner ends all processes that the file has
 * started, and the file's other tests fail too.
 */
const TIMEOUT_MS = 120_000

/**
 * How long no test may end before the files that run are given up: longer than any single test may take. The runner knows
 * no limit for a test that keeps its thread, and would wait for it without end.
 */
const SILENCE_MS = { usually: 10 * 60_000, thorough: 60 * 60_000 }

/** Lines of a failed test's report that are kept. */
const REPORT_LINES = 60

/** Reports and times of earlier runs. */
const memory = join(root, 'dist/tests')

/**
 * How many files run beside each other: two for each processor, since tests wait for processes and for time to pass, too.
 * With more, each takes more of a processor, because berth and tests look through all processes of the machine and ask
 * again while they wait, and tests are late for their own timeouts: 20 files took 109 s of two processors as six ran at
 * once, and 97 s as three did.
 */
export const WORKERS = availableParallelism() * 2

/**
 * For all processes that tests start. A thread of JavaScriptCore touches memory ahead for the main thread. That pays where a
 * processor has nothing to do; here it takes a seventh of a command's processor time from other tests.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = { BUN_JSC_useWarmUpMarkedBlocks: '0' }

/**
 * Runs test files in parallel, those that were slow the last time first, or in a first run those of `slow-files.json`. A
 * slow file that began last would leave the other processors without work.
 *
 * @param name names the reports and times below dist/tests
 * @param files paths relative to the repository's root
 * @param workers how many files run beside each other
 */
export async function runTests(
  name: string,
  files: readonly string[],
  env: Record<string, string>,
  workers: number,
): Promise<TestRun> {
  mkdirSync(memory, { recursive: true })
  const report = join(memory, `${name}.xml`)
  const timings = join(memory, `${name}.json`)
  writeFileSync(timings, JSON.stringify({ version: 1, files: expectedMilliseconds(files, timings) }))
  const processorTimes = join(memory, `${name}-processor.txt`)
  rmSync(report, { force: true })
  rmSync(processorTimes, { force: true })
  using temporary = new TemporaryDirectory(!env.BERTH_TEST_THOROUGH)
  const parallel = [`--parallel=${workers}`, '--no-isolate', `--timings=${timings}`, '--update-timings']
  const command = [
    process.execPath,
    'test',
    ...['--timeout', String(TIMEOUT_MS), '--reporter=junit', `--reporter-outfile=${report}`],
    ...(workers === 1 ? [] : parallel),
    ...files.map((file) => `./${file}`),
  ]
  const interrupted = (): void => {
    temporary[Symbol.dispose]()
    // Another run beside this one removes its directory before.
    setImmediate(() => process.exit(130))
  }
  process.once('SIGINT', interrupted)
  const ms = env.BERTH_TEST_THOROUGH ? SILENCE_MS.thorough : SILENCE_MS.usually
  const { stderr, ...ended } = await runProgram(
    command,
    { ...ENVIRONMENT, ...env, TMPDIR: temporary.path, BERTH_TEST_PROCESSOR_TIMES: processorTimes },
    true,
    { ms, onSilence: endWorkers },
  )
  process.off('SIGINT', interrupted)
  const xml = readIfThere(report)
  return {
    ...ended,
    results: resultsIn(xml),
    reports: reportsIn(stderr),
    reasons: stderr.split('\n').filter((line) => line.startsWith('SKIP')),
    fileSeconds: fileSecondsIn(xml),
    fileProcessorSeconds: processorSecondsIn(readIfThere(processorTimes)),
    leftovers: await temporary.leftovers(),
  }
}

/**
 * Ends the processes in which files run, after saying what each does. The runner then counts these files as failed, and
 * goes on with the others.
 *
 * @param runner id of the runner's process
 */
function endWorkers(runner: number): void {
  const below = (parent: number): number[] => childrenOf(parent).flatMap((pid) => [pid, ...below(pid)])
  console.error('No test has ended for long. What runs, with its state and where it waits in the kernel:')
  for (const pid of below(runner)) {
    const [state = '?'] = /^State:\s*(.+)$/m.exec(readIfThere(`/proc/${pid}/status`))?.slice(1) ?? []
    const command = readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').slice(0, 200)
    console.error(`${pid} ${state} ${readIfThere(`/proc/${pid}/wchan`)} ${command}`)
  }
  const workers = childrenOf(runner)
  // Without workers all files run in the runner itself.
  for (const pid of workers.length > 0 ? workers : [runner]) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has just ended by itself.
    }
  }
}

const childrenOf = (pid: number): number[] =>
  readIfThere(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)

/**
 * Returns how long each file is expected to take, by what an earlier run noted. Each file has a number, because Bun starts
 * those first of which it knows nothing.
 */
function expectedMilliseconds(files: readonly string[], timings: string): Record<string, number> {
  const slow: Record<string, number> = SLOW_FILES.seconds
  const unknown = files.map((file) => [file, (slow[file] ?? 0) * 1_000])
  return { ...Object.fromEntries(unknown), ...JSON.parse(readIfThere(timings) || '{}').files }
}

/** Returns the lines between each failure and the result before it. */
function reportsIn(stderr: string): string[] {
  const reports: string[] = []
  let file = ''
  let lines: string[] = []
  for (const line of stderr.split('\n')) {
    // At the end the runner lists all failures again, by their names only.
    if (/^\d+ tests? failed:/.test(line)) break
    lines.push(line)
    const isFailure = /^\(fail\)|^✗ /.test(line)
    // An error outside of all tests ends with the second of two rulers.
    const isError = /^-{20,}$/.test(line) && lines.filter((one) => one === line).length === 2
    if (isFailure || isError) reports.push([file, ...lines.slice(-REPORT_LINES)].join('\n'))
    if (/\.test\.ts:$/.test(line)) file = line
    if (isFailure || isError || /^\((?:pass|skip|todo)\)|\.test\.ts:$/.test(line)) lines = []
  }
  return reports
}

function resultsIn(xml: string): TestResult[] {
  const cases = xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)
  return [...cases].map(([, attributes = '', inner = '']) => ({
    file: attribute(attributes, 'file'),
    name: attribute(attributes, 'name'),
    outcome: /<failure|<error/.test(inner) ? 'failed' : inner.includes('<skipped') ? 'skipped' : 'passed',
  }))
}

/** A file's suite has the file's name; those within it are the file's groups of tests. */
function fileSecondsIn(xml: string): Map<string, number> {
  const suites = [...xml.matchAll(/<testsuite\b([^>]*)>/g)].map(([, attributes = '']) => attributes)
  return new Map(
    suites
      .filter((one) => attribute(one, 'name') === attribute(one, 'file'))
      .map((one) => [attribute(one, 'file'), Number(attribute(one, 'time'))]),
  )
}

/** Reads the notes of test/support/processor-time.ts: one or more lines for each file. */
function processorSecondsIn(notes: string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [, seconds, path = ''] of notes.matchAll(/^(\S+) (.+)$/gm)) {
    const file = relative(root, path)
    sums.set(file, (sums.get(file) ?? 0) + Number(seconds))
  }
  return sums
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

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
