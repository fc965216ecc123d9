import { afterAll, beforeAll } from 'bun:test'
import { appendFileSync, readFileSync } from 'node:fs'

/**
 * Notes what each test file used of a processor, if `scripts/test` asks for it. Loaded before all tests (bunfig.toml). The
 * runner itself knows only how long a file took.
 *
 * The kernel counts a child when it has ended. What a file's own `afterAll` stops may end later than the one below looks,
 * so a file has a second line when the next one begins.
 */
const notes = process.env.BERTH_TEST_PROCESSOR_TIMES
// Runners that a test starts take no part in it.
delete process.env.BERTH_TEST_PROCESSOR_TIMES

/** The file whose tests run, and the processor time that is noted already. */
let current: { file: string; before: number } | null = null

/** The kernel counts in hundredths of a second, for every architecture that berth runs on. */
const TICKS_PER_SECOND = 100

/** Processor time of this process and of those that it waited for, in seconds: proc_pid_stat(5), fields 14 to 17. */
function processorSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((all, ticks) => all + Number(ticks), 0) / TICKS_PER_SECOND
}

function note(path: string): void {
  if (current === null) return
  const now = processorSeconds()
  appendFileSync(path, `${(now - current.before).toFixed(2)} ${current.file}\n`)
  current.before = now
}

if (notes !== undefined) {
  beforeAll(() => {
    note(notes)
    current = { file: Bun.main, before: processorSeconds() }
  })
  afterAll(() => note(notes))
}
