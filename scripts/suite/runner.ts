import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { TemporaryDirectory } from './leftovers.ts'
import SLOW_FILES from './slow-files.json'
import { root } from './test-files.ts'

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
  /** The lines in which tests say why they are skipped. */
  readonly reasons: readonly string[]
  /** Milliseconds that each file took, while others ran beside it. */
  readonly fileTimes: Readonly<Record<string, number>>
  /** Files and processes that were there when all tests had ended. */
  readonly leftovers: readonly string[]
  readonly seconds: number
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

/** How long what the runner has started may keep its standard error open after its end. */
const GRACE_MS = 10_000

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
 * Runs test files by Bun's runner, those that were slow the last time first, or in a first run those of `slow-files.json`. A
 * slow file that began last would leave the other processors without work. Failures are shown, of other tests a dot each.
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
  writeFileSync(timings, JSON.stringify({ version: 1, files: expectedTimes(files, timings) }))
  rmSync(report, { force: true })
  using temporary = new TemporaryDirectory(!env.BERTH_TEST_THOROUGH)
  const interrupted = (): void => {
    temporary[Symbol.dispose]()
    // Another run beside this one removes its directory before.
    setImmediate(() => process.exit(130))
  }
  process.once('SIGINT', interrupted)
  const started = performance.now()
  const child = Bun.spawn(
    [
      ...[process.execPath, 'test', '--dots', '--timeout', String(TIMEOUT_MS)],
      ...['--reporter=junit', `--reporter-outfile=${report}`, `--timings=${timings}`, '--update-timings'],
      ...[`--parallel=${workers}`, '--no-isolate'],
      ...files.map((file) => `./${file}`),
    ],
    {
      cwd: root,
      env: { ...process.env, ...ENVIRONMENT, ...env, TMPDIR: temporary.path },
      stdio: ['ignore', 'inherit', 'pipe'],
    },
  )
  const silence = setTimeout(
    () => endWorkers(child.pid),
    env.BERTH_TEST_THOROUGH ? SILENCE_MS.thorough : SILENCE_MS.usually,
  )
  const output = await readOutput(child, () => silence.refresh())
  clearTimeout(silence)
  process.off('SIGINT', interrupted)
  return {
    succeeded: (await child.exited) === 0,
    results: resultsIn(readIfThere(report)),
    reasons: output.split('\n').filter((line) => line.startsWith('SKIP')),
    fileTimes: timesIn(timings),
    leftovers: await temporary.leftovers(),
    seconds: (performance.now() - started) / 1_000,
  }
}

/** Shows the output of the runner as it comes, and returns it. */
async function readOutput(
  { stderr, exited }: Bun.Subprocess<'ignore', 'inherit', 'pipe'>,
  onChunk: () => void,
): Promise<string> {
  const decoder = new TextDecoder()
  const reader = stderr.getReader()
  void exited.then(() => setTimeout(() => void reader.cancel(), GRACE_MS).unref())
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return text
    onChunk()
    process.stderr.write(value)
    text += decoder.decode(value, { stream: true })
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
  const commandOf = (pid: number): string => readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
  console.error('\nNo test has ended for long. What runs, with its state and where it waits in the kernel:')
  for (const pid of [runner, ...below(runner)]) {
    const [state = '?'] = /^State:\s*(.+)$/m.exec(readIfThere(`/proc/${pid}/status`))?.slice(1) ?? []
    console.error(`${pid} ${state} ${readIfThere(`/proc/${pid}/wchan`)} ${commandOf(pid).slice(0, 200)}`)
  }
  const workers = childrenOf(runner).filter((pid) => commandOf(pid).includes(' --test-worker '))
  // A single file runs in the runner itself, whose other children are those of its tests.
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
 * Returns how many milliseconds each file is expected to take, by what an earlier run noted. Each file has a number, because
 * Bun starts those first of which it knows nothing.
 */
function expectedTimes(files: readonly string[], timings: string): Record<string, number> {
  const slow: Record<string, number> = SLOW_FILES
  const known = timesIn(timings)
  return Object.fromEntries(files.map((file) => [file, known[file] ?? (slow[file] ?? 0) * 1_000]))
}

const timesIn = (timings: string): Record<string, number> =>
  JSON.parse(readIfThere(timings) || '{}').files ?? {}

function resultsIn(xml: string): TestResult[] {
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

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
