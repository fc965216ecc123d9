import { processes as system } from '../../system/processes.ts'
import { readProcessTable } from '../process-table.ts'
import { signal } from '../processes.ts'
import { PROCESS_SIGNALS, type SignalOutcome } from '../sandbox.ts'
import type { ServedCall } from './call-stream.ts'

/** The server's processes, as sandboxd finds them. */
interface StartedProcesses {
  /** Returns the pids of all that commands have started. */
  find(): number[]
  /** First 24 hex digits of their markers. */
  readonly marker: string
}

/** Milliseconds that a process has to end after a signal, before it counts as running. */
const END_MS = 1_000

/** Answers with the time of a `ProcessTable` of all that commands have started, and streams its entries, each a line of JSON. */
export async function serveProcesses(
  { respond, stream }: ServedCall,
  { find, marker }: StartedProcesses,
): Promise<void> {
  const { at, processes } = readProcessTable(find(), marker, process.pid)
  respond({ at })
  await stream.send(Buffer.from(processes.map((entry) => `${JSON.stringify(entry)}\n`).join('')))
}

/** Sends a signal to a process that commands have started; answers with a `SignalOutcome`. */
export async function serveSignal({ input, respond }: ServedCall, { find }: StartedProcesses): Promise<void> {
  const pid = Number(input.pid)
  const name = PROCESS_SIGNALS.find((one) => one === input.signal)
  const started = system.usage(pid)?.startedMs
  if (name === undefined || started === undefined || !find().includes(pid)) {
    respond('missing' satisfies SignalOutcome)
    return
  }
  signal(pid, `SIG${name}`)
  const isThere = (): boolean => system.read(pid) !== null && system.usage(pid)?.startedMs === started
  const deadline = performance.now() + END_MS
  for (let pause = 1; isThere() && performance.now() < deadline; pause = Math.min(pause * 2, 50)) {
    await Bun.sleep(pause)
  }
  respond((isThere() ? 'running' : 'ended') satisfies SignalOutcome)
}
