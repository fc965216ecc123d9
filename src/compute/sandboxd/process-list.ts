import { fieldsOf } from '../../runtime/is-object.ts'
import { Pace } from '../../runtime/pace.ts'
import type { ProcessTable, TableEntry } from '../process-table.ts'
import {
  type CommandOwner,
  ComputeError,
  PROCESS_STATES,
  type ProcessSignal,
  type ServerProcess,
  type SignalOutcome,
} from '../sandbox.ts'
import type { CallStream } from './call-stream.ts'
import type { SandboxdClient } from './client.ts'
import type { ClientCall } from './client-calls.ts'
import type { SandboxdExecution } from './client-execution.ts'

/** Milliseconds between two looks at a process from which its use of processors follows. */
const SHORTEST_MS = 250
const LONGEST_MS = 30_000

/** Milliseconds in which sandboxd has to answer. */
const ANSWER_MS = 10_000

/** Most bytes of a list, of a line of it, and most lines. @bound program */
const MAX_BYTES = 16 * 1024 * 1024
const MAX_LINE = 32 * 1024
const MAX_LINES = 10_000

const LINE_FEED = 0x0a

/** Largest number of milliseconds that is taken: thousands of years, which a date can hold. */
const MAX_MS = 1e14

/** Longest command line that is taken. @bound program */
const MAX_TEXT = 4_000

/**
 * Commands that are over and whose owners are remembered, because what they left in the background may run.
 * @bound program
 */
const MAX_REMEMBERED = 1_000

/** Shows and signals the processes of one server, through its sandboxd. */
export class ProcessList {
  readonly #sandboxd: SandboxdClient
  /** By the numbers of commands. */
  readonly #owners = new Map<number, CommandOwner>()
  /** The numbers of remembered commands that are over, the oldest first. */
  readonly #over: number[] = []
  #previous: ProcessTable | null = null

  constructor(sandboxd: SandboxdClient) {
    this.#sandboxd = sandboxd
  }

  /** Remembers what a command is run for. */
  add({ id, exit }: SandboxdExecution, owner: CommandOwner): void {
    this.#owners.set(id, owner)
    const forget = (): void => {
      this.#over.push(id)
      const oldest = this.#over.length > MAX_REMEMBERED ? this.#over.shift() : undefined
      if (oldest !== undefined) this.#owners.delete(oldest)
    }
    void exit.then(forget, forget)
  }

  /** Returns all that commands have started and that runs. Throws `ComputeError`. */
  async read(): Promise<ServerProcess[]> {
    let previous = this.#previous
    let table = await this.#readTable()
    const age = previous === null ? 0 : table.at - previous.at
    if (previous === null || age < SHORTEST_MS || age > LONGEST_MS) {
      previous = table
      await Bun.sleep(SHORTEST_MS)
      table = await this.#readTable()
    }
    this.#previous = table
    const elapsed = table.at - previous.at
    const before = new Map(previous.processes.map((entry) => [entry.pid, entry]))
    return table.processes.map(({ cpuMs, startedMs, execution, ...entry }) => {
      const ageMs = Math.max(0, table.at - startedMs)
      const earlier = before.get(entry.pid)
      const isSame = earlier !== undefined && earlier.startedMs === startedMs
      const usedMs = isSame ? cpuMs - earlier.cpuMs : cpuMs
      const inMs = isSame ? elapsed : ageMs
      const cpuPercent = inMs <= 0 ? 0 : Math.max(0, Math.round((usedMs / inMs) * 1_000) / 10)
      const owner = execution === null ? null : (this.#owners.get(execution) ?? null)
      return { ...entry, cpuPercent, ageMs, owner }
    })
  }

  /** See `Sandbox.signal`. */
  async signal(pid: number, name: ProcessSignal): Promise<SignalOutcome> {
    return this.#ask('signal', { pid, signal: name }, async (call) => {
      const outcome = await call.result
      if (outcome !== 'missing' && outcome !== 'ended' && outcome !== 'running') throw wrongAnswer('signal')
      return outcome
    })
  }

  #readTable(): Promise<ProcessTable> {
    return this.#ask('processes', {}, async (call) => {
      const { at } = fieldsOf(await call.result)
      if (!isTime(at)) throw wrongAnswer('processes')
      return { at, processes: await readEntries(call.stream) }
    })
  }

  async #ask<T>(
    name: 'processes' | 'signal',
    input: object,
    read: (call: ClientCall) => Promise<T>,
  ): Promise<T> {
    const call = this.#sandboxd.call(name, input)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      call.drop()
    }, ANSWER_MS)
    try {
      call.stream.end()
      return await read(call)
    } catch (error) {
      if (isLate)
        throw new ComputeError(`The server has not responded for ${ANSWER_MS / 1_000} seconds.`, {
          cause: error,
        })
      throw error instanceof ComputeError ? error : wrongAnswer(name, error)
    } finally {
      clearTimeout(timer)
      // What nobody reads is not kept.
      call.drop()
    }
  }
}

/**
 * Reads what sandboxd has sent, which a command may have taken over. Takes a line at a time: parsing all at once would
 * hold up everything else, and could take a multiple of its memory. Throws `ComputeError`.
 */
async function readEntries(stream: CallStream): Promise<TableEntry[]> {
  const { buffer, byteOffset, length } = await stream.readAll(MAX_BYTES)
  const text = Buffer.from(buffer, byteOffset, length)
  const entries: TableEntry[] = []
  const pace = new Pace()
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(LINE_FEED, from)
    if (end === -1 || end - from > MAX_LINE || entries.length === MAX_LINES) throw wrongAnswer('processes')
    entries.push(parseEntry(JSON.parse(text.toString('utf8', from, end))))
    from = end + 1
    if (pace.due) await pace.rest()
  }
  return entries
}

function parseEntry(value: unknown): TableEntry {
  const { pid, parentPid, command, state, cpuMs, startedMs, memoryBytes, ports, execution } = fieldsOf(value)
  const known = PROCESS_STATES.find((one) => one === state)
  if (
    ![pid, parentPid, memoryBytes].every(Number.isSafeInteger) ||
    !(isAmount(pid) && isAmount(parentPid) && isAmount(memoryBytes) && isTime(cpuMs) && isTime(startedMs)) ||
    !(typeof command === 'string' && command.length <= MAX_TEXT && command.isWellFormed()) ||
    !(known !== undefined && (execution === null || isAmount(execution))) ||
    !(Array.isArray(ports) && ports.every(isPort))
  ) {
    throw wrongAnswer('processes')
  }
  return { pid, parentPid, command, state: known, cpuMs, startedMs, memoryBytes, ports, execution }
}

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0

const isTime = (value: unknown): value is number => isAmount(value) && value <= MAX_MS

const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && isAmount(value) && value <= 65_535

const wrongAnswer = (service: string, cause?: unknown): ComputeError =>
  new ComputeError(`sandboxd answered "${service}" in another form than expected.`, { cause })
