import { closeSync, statSync, writeSync } from 'node:fs'
import { commandMarker, findFamily, MARKER_NAME } from '../processes.ts'
import { GRACE_MS, terminate } from '../terminate.ts'
import type { Libc } from './libc.ts'
import { Credit, OutputPump } from './output.ts'
import { type Configuration, type ExitReport, type SpawnRequest, WINDOW } from './protocol.ts'

/** Milliseconds after the process's end in which its pipes may still deliver. */
const DRAIN_MS = 100

/**
 * Milliseconds in which most commands are over. Until then nothing is read: what they print waits in
 * the pipe, and is taken in one go where setting up streams would cost as much as the command.
 */
const QUICK_MS = 3

/** Longest single argument that Linux passes to a program, with room for the terminating zero. */
const MAX_ARGUMENT = 128 * 1024 - 1

/** Runs a command too long for an argument: the shell reads it from descriptor 3, which it then closes. */
const LONG_COMMAND = 'eval "$(cat <&3)" 3<&-'

/** Longest time that a timer can be set to. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** What a command needs of the agent. */
export interface CommandContext {
  libc: Libc
  configuration: Configuration
  /** Marks the next process that starts as the one to go first when memory runs out. */
  withOomScore<T>(spawn: () => T): T
  output(stream: 'stdout' | 'stderr', data: Uint8Array): void
}

/** The command could not be started; the message says why, for a person. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError'
}

/** One `sh -c` under way, with all that it starts. */
export class Command {
  readonly #context: CommandContext
  readonly #request: SpawnRequest
  readonly #credit = new Credit(WINDOW)
  /** All that this command starts carries this value in its environment. */
  readonly marker: string
  #stdin: MemoryFile | null = null
  #pid: number | null = null
  #ending: Promise<void> | null = null
  #graceEnds = Number.POSITIVE_INFINITY
  readonly #givenUp = Promise.withResolvers<number>()
  #cancelled = false
  #timedOut = false

  constructor(id: number, request: SpawnRequest, context: CommandContext) {
    this.#request = request
    this.#context = context
    this.marker = commandMarker(context.configuration.marker, id)
    if (request.stdin) this.#stdin = new MemoryFile(context.libc)
  }

  /** The shell's pid once it runs. */
  get pid(): number | null {
    return this.#pid
  }

  /** Adds bytes to standard input; they are kept until the command starts. */
  write(data: Uint8Array): void {
    this.#stdin?.append(data)
  }

  /** More output may be sent. */
  credit(bytes: number): void {
    this.#credit.add(bytes)
  }

  /** Ends the command and all that it started; it has so many milliseconds to go by itself. */
  cancel(graceMs: number): void {
    this.#cancelled = true
    this.#end(graceMs)
  }

  /** Runs the command to its end. Throws `SpawnError`. */
  async run(): Promise<ExitReport> {
    if (this.#cancelled) return { exitCode: 143, timedOut: false, truncated: false }
    const { process, pumps } = this.#spawn()
    this.#pid = process.pid
    const timer = this.#limitTime()
    const quick = await endsWithin(QUICK_MS, process.exited)
    const open = quick ? pumps.filter((pump) => !pump.takeEnd()) : pumps
    const drained = Promise.all(open.map((pump) => pump.run()))
    const exitCode = await Promise.race([process.exited, this.#givenUp.promise])
    clearTimeout(timer)
    if (this.#request.endBackground) this.#end(GRACE_MS)
    await this.#ending
    if (open.length > 0) await drain(drained, open)
    return { exitCode, timedOut: this.#timedOut, truncated: pumps.some((pump) => pump.truncated) }
  }

  #limitTime(): Timer | undefined {
    const { timeoutMs } = this.#request
    if (timeoutMs === null) return undefined
    const expire = (): void => {
      this.#timedOut = true
      this.#end(GRACE_MS)
    }
    return setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS))
  }

  #end(graceMs: number): void {
    const pid = this.#pid
    if (pid === null) return
    this.#graceEnds = Math.min(this.#graceEnds, performance.now() + graceMs)
    if (this.#ending !== null) return
    const family = { roots: [pid], sessions: [pid], marker: this.marker, except: [process.pid, 1] }
    this.#ending = terminate(
      () => findFamily(family),
      () => this.#graceEnds,
    )
    // Only a process that may not be signalled (setuid) or cannot act on it is still there after that.
    void this.#ending.then(() => setTimeout(() => this.#givenUp.resolve(137), DRAIN_MS))
  }

  #spawn() {
    const { libc, configuration, output, withOomScore } = this.#context
    const request = this.#request
    const ours: number[] = []
    const theirs: number[] = this.#stdin === null ? [] : [this.#stdin.fd]
    try {
      const script = this.#script()
      theirs.push(...script.fds)
      const pumps = (['stdout', 'stderr'] as const).map((stream) => {
        const { read, write } = libc.pipe()
        ours.push(read)
        theirs.push(write)
        const send = (data: Uint8Array): void => output(stream, data)
        return { write, pump: new OutputPump(read, this.#credit, request.outputLimit, send) }
      })
      const process = withOomScore(() =>
        Bun.spawn(['/bin/sh', '-c', script.command], {
          cwd: folderOf(configuration.workspace, request.cwd),
          env: { ...configuration.env, ...request.env, [MARKER_NAME]: this.marker },
          stdio: [this.#stdin?.fd ?? 'ignore', ...pumps.map(({ write }) => write), ...script.fds] as [
            number | 'ignore',
            number,
            number,
          ],
          detached: true,
        }),
      )
      return { process, pumps: pumps.map(({ pump }) => pump) }
    } catch (error) {
      for (const fd of ours) closeSync(fd)
      throw new SpawnError(explain(error), { cause: error })
    } finally {
      for (const fd of theirs) closeSync(fd)
      this.#stdin = null
    }
  }

  #script(): { command: string; fds: number[] } {
    const { command } = this.#request
    if (Buffer.byteLength(command) <= MAX_ARGUMENT) return { command, fds: [] }
    const file = new MemoryFile(this.#context.libc)
    file.append(new TextEncoder().encode(command))
    return { command: LONG_COMMAND, fds: [file.fd] }
  }
}

/** A file in memory whose descriptor stays at the beginning while it is filled, for a child to read. */
class MemoryFile {
  readonly fd: number
  #size = 0

  constructor(libc: Libc) {
    this.fd = libc.memoryFile()
  }

  append(data: Uint8Array): void {
    for (let at = 0; at < data.length; ) {
      const written = writeSync(this.fd, data, at, data.length - at, this.#size)
      at += written
      this.#size += written
    }
  }
}

function folderOf(workspace: string, cwd: string): string {
  const folder = cwd === '' ? workspace : `${workspace}/${cwd}`
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Error(`The working folder "${cwd}" does not exist.`)
  }
  return folder
}

/** Whether it resolves so soon. */
async function endsWithin(ms: number, end: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, ms, false)
  void end.then(() => resolve(true))
  const ended = await promise
  clearTimeout(timer)
  return ended
}

/** Waits for the end of both streams, but not for a background child that keeps them open. */
async function drain(drained: Promise<unknown>, pumps: readonly OutputPump[]): Promise<void> {
  for (const pump of pumps) pump.expectEnd()
  for (;;) {
    const over = await Promise.race([drained.then(() => true), Bun.sleep(DRAIN_MS).then(() => false)])
    if (over) return
    if (pumps.some((pump) => pump.stalled)) continue
    for (const pump of pumps) pump.discard()
    return
  }
}

function explain(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EAGAIN') {
    return 'No further process can be started: the server has as many as its limit allows. Stop some, or restart the server.'
  }
  if (code === 'ENOMEM') return 'No further process can be started: the server is out of memory.'
  if (code === 'EMFILE') return 'No further command can be started: the server has too many open.'
  return error instanceof Error ? error.message : String(error)
}
