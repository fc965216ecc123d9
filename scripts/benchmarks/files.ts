import { Box, type Kind } from '../../test/compute/workspace-fixture.ts'
import { median, ms, print, type Row, time, times } from './measure.ts'

const LOCAL: Kind = 'by descriptor'
const CALLED: Kind = 'through calls'

/** Runs of each small operation, and of each large one, on either side. */
const SMALL_RUNS = 200
const LARGE_RUNS = 5

const LARGE_BYTES = 50e6

/** Files that are listed and counted. */
const FILES = 200

/** Milliseconds that a small operation may take longer by calls, and bytes a second of a large one. */
const SMALL_GOAL_MS = 1
const LARGE_GOAL = 140e6

type Workspace = Box['workspace']

/** What a server's files take by calls to its sandboxd, against those on this machine, in turns. */
export async function benchFiles(): Promise<void> {
  await using local = await Box.open(LOCAL)
  await using called = await Box.open(CALLED)
  const small = new Uint8Array(100)
  for (const { workspace } of [local, called]) {
    for (let n = 0; n < FILES; n++) await workspace.write(`files/${n}`, small)
  }
  const run = (runs: number, work: (workspace: Workspace) => Promise<unknown>) =>
    inTurns(runs, local.workspace, called.workspace, work)
  const rows: Row[] = []
  const operations: [string, (workspace: Workspace) => Promise<unknown>][] = [
    ['write of 100 bytes', (workspace) => workspace.write('small', small)],
    ['read of 100 bytes', (workspace) => workspace.read('small')],
    ['stat', (workspace) => workspace.stat('small')],
    [`list of ${FILES}`, (workspace) => workspace.list({ all: false })],
    [`usage of ${FILES}`, (workspace) => workspace.usage()],
  ]
  for (const [what, work] of operations) {
    const [base, measured] = await run(SMALL_RUNS, work)
    rows.push({
      what,
      ...{ measured: ms(measured), baseline: ms(base), ratio: times(measured / base) },
      goal: `≤ ${SMALL_GOAL_MS} ms more`,
      met: measured - base <= SMALL_GOAL_MS,
    })
  }
  const large = new Uint8Array(LARGE_BYTES).fill(7)
  const transfers: [string, (workspace: Workspace) => Promise<unknown>][] = [
    ['write of 50 MB', (workspace) => workspace.write('large', large)],
    ['read of 50 MB', (workspace) => workspace.read('large')],
    ['pack of 50 MB', drain],
  ]
  for (const [what, work] of transfers) {
    const [base, measured] = await run(LARGE_RUNS, work)
    rows.push({
      what,
      ...{ measured: speed(measured), baseline: speed(base), ratio: times(base / measured) },
      goal: `≥ ${LARGE_GOAL / 1e6} MB/s`,
      met: LARGE_BYTES / measured >= LARGE_GOAL / 1000,
    })
  }
  print('files by calls to sandboxd (baseline: files of this machine)', rows)
}

/** Medians in milliseconds for both, which take turns. */
async function inTurns(
  runs: number,
  local: Workspace,
  called: Workspace,
  work: (workspace: Workspace) => Promise<unknown>,
): Promise<[number, number]> {
  const taken: [number[], number[]] = [[], []]
  for (let n = 0; n < runs + 1; n++) {
    const both = [await time(() => work(local)), await time(() => work(called))] as const
    // The first loads what is loaded on first use.
    if (n > 0) for (const side of [0, 1] as const) taken[side].push(both[side])
  }
  return [median(taken[0]), median(taken[1])]
}

async function drain(workspace: Workspace): Promise<void> {
  for await (const _ of workspace.pack()) {
    // Only its speed counts.
  }
}

const speed = (milliseconds: number): string => `${(LARGE_BYTES / milliseconds / 1000).toFixed(0)} MB/s`
