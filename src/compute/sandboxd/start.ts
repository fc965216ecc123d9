import { closeSync } from 'node:fs'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import type { ControllingStart, Libc, Pty, PtyCalls } from '../../system/system.ts'
import type { TerminalSize } from '../sandbox.ts'
import type { OutputPump } from './output.ts'
import { scriptOf } from './script.ts'
import { CommandTerminal, terminalArguments } from './terminal.ts'

/** The options of every start of a command. */
export interface CommandStart {
  libc: Libc
  command: string
  /** Standard input, whose descriptor the start closes. Null for none, or the terminal. */
  stdin: { readonly fd: number } | null
  /** Creates the reader of `fd`, which takes ownership of it. */
  pump(fd: number, stream: 'stdout' | 'stderr'): OutputPump
  /** @param stdio descriptors from number 0 on */
  spawn(argv: string[], stdio: Array<number | 'ignore'>, newSession: boolean): Bun.Subprocess
}

/** A running command, and the readers of its output. */
export interface Started {
  readonly process: Bun.Subprocess
  readonly pumps: readonly OutputPump[]
  readonly terminal: CommandTerminal | null
}

/** Starts a command whose output goes to two pipes. Throws `SpawnError`. */
export function startOnPipes({ libc, command, stdin, pump, spawn }: CommandStart): Started {
  const ours: number[] = []
  const theirs: number[] = stdin === null ? [] : [stdin.fd]
  try {
    const script = scriptOf(libc, command)
    theirs.push(...script.fds)
    const ends = (['stdout', 'stderr'] as const).map((stream) => {
      const { read, write } = libc.pipe('read')
      ours.push(read)
      theirs.push(write)
      return { write, pump: pump(read, stream) }
    })
    const stdio: Array<number | 'ignore'> = [
      stdin?.fd ?? 'ignore',
      ...ends.map(({ write }) => write),
      ...script.fds,
    ]
    const process = spawn(['/bin/sh', '-c', script.command], stdio, true)
    return { process, pumps: ends.map((end) => end.pump), terminal: null }
  } catch (error) {
    for (const fd of ours) closeSync(fd)
    throw spawnError(error)
  } finally {
    for (const fd of theirs) closeSync(fd)
  }
}

/** The additional options of a start on a terminal. */
interface TerminalOptions extends CommandStart {
  calls: PtyCalls
  /** Belongs to the start. */
  pty: Pty
  size: TerminalSize
  /** How the program gets its terminal; null to do without. */
  control: ControllingStart | null
  /** Called when the terminal has taken typed bytes. */
  typed(bytes: number): void
}

/** Starts a command that has a terminal. Throws `SpawnError`. */
export function startOnTerminal(options: TerminalOptions): Started {
  const { libc, command, stdin, pump, spawn, calls, pty, size, control, typed } = options
  const terminal = new CommandTerminal(calls, pty, size, typed)
  const theirs: number[] = stdin === null ? [] : [stdin.fd]
  try {
    const script = scriptOf(libc, command)
    theirs.unshift(...script.fds)
    const input = stdin === null ? null : 2 + theirs.length
    const argv = terminalArguments(script, control?.prefix ?? [], input)
    const stdio = [pty.slave, pty.slave, pty.slave, ...theirs]
    const process = spawn(argv, stdio, control?.newSession ?? true)
    return { process, pumps: [pump(pty.master, 'stdout')], terminal }
  } catch (error) {
    terminal.release()
    closeSync(pty.master)
    throw spawnError(error)
  } finally {
    for (const fd of theirs) closeSync(fd)
  }
}

/** The command could not be started; the message says why, for a person. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError'
}

/** Explains the system's refusal to start a process, for a person. */
export function spawnError(error: unknown): SpawnError {
  return new SpawnError(explain(error), { cause: error })
}

function explain(error: unknown): string {
  const code = codeOf(error)
  if (code === 'EAGAIN') {
    return 'No further process can be started: the server has as many as its limit allows. Stop some, or restart the server.'
  }
  if (code === 'ENOMEM') return 'No further process can be started: the server is out of memory.'
  if (code === 'EMFILE') return 'No further command can be started: the server has too many open.'
  return messageOf(error)
}
