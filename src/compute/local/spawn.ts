import { closeSync, writeSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { REPORT_READER_FD } from '../sandboxd/protocol.ts'
import type { SocketPair } from './network/socket-calls.ts'

/** Most characters kept of a start's error output. @bound program */
const MAX_SAID = 2000

/** The descriptor on which a process reports the namespaces that it has made, and the first one of `SpawnPlan.files`. */
export const REPORT_FD = 6
export const FILES_FD = REPORT_READER_FD + 1

/**
 * A process to start. It has a socket to berth on descriptor 3, `input` to read on descriptor 4, and, if `descriptors`
 * is set, a socket on descriptor 5 over which descriptors pass.
 */
export interface SpawnPlan {
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  input?: Uint8Array
  /** What passes: terminals, from berth, or sockets of the sandbox's own network, to berth. */
  descriptors?: 'terminals' | 'sockets'
  /** Makes the sockets for what the process reports on `REPORT_FD`; absent if it reports nothing. */
  reports?: () => SocketPair
  /** More to read: the first on `FILES_FD`, each of the others on the next descriptor. */
  files?: readonly Uint8Array[]
  /** Descriptor of a user namespace, the next one after those of `files`; stays the caller's to close. */
  userNamespace?: number
}

/** A process under way. */
export interface Spawned {
  process: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  /** Berth's end of the socket pair; the caller's to close. */
  socket: number
  /** Berth's end of the socket for descriptors, the caller's to close too; null if none was asked for. */
  descriptors: number | null
  /** Berth's end of `REPORT_FD`, the caller's to close too; null if nothing is reported. */
  report: number | null
}

/**
 * Starts a process. Must be called on the main thread: `--die-with-parent` follows the thread. Throws the system's
 * error if the program cannot be started.
 */
export function spawnWithSocket({
  argv,
  env,
  input,
  descriptors,
  reports,
  files = [],
  userNamespace,
}: SpawnPlan): Spawned {
  const report = reports?.() ?? null
  const pipe = (isWanted: boolean) => (isWanted ? ('pipe' as const) : ('ignore' as const))
  const more = [
    ...[pipe(true), pipe(input !== undefined), pipe(descriptors !== undefined)],
    // A process that lost its reader would end halfway, and leave one waiting that it has made. So it has a copy of
    // berth's end, and goes on if berth is killed, until its socket tells it.
    ...[report?.theirs ?? pipe(false), report?.ours ?? pipe(false)],
    ...files.map(() => pipe(true)),
    ...(userNamespace === undefined ? [] : [userNamespace]),
  ]
  const process = startProcess(argv, env, more, report)
  // Bun's types know the first three, of which none is piped here.
  const ends = process.stdio as unknown as Array<number | null | undefined>
  const end = (descriptor: number): number => ends[descriptor] ?? -1
  for (const [index, bytes] of files.entries()) writeAndClose(end(FILES_FD + index), bytes)
  if (input !== undefined) writeAndClose(end(4), input)
  return {
    process,
    socket: end(3),
    descriptors: descriptors === undefined ? null : end(5),
    report: report?.ours ?? null,
  }
}

/** Starts a process with further descriptors, from number 3 on. Closes berth's copy of the process's end of the report. */
function startProcess(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  descriptors: readonly ('pipe' | 'ignore' | number)[],
  report: SocketPair | null,
): Bun.Subprocess<'ignore', 'ignore', 'pipe'> {
  const last = descriptors.findLastIndex((one) => one !== 'ignore')
  try {
    return Bun.spawn([...argv], {
      cwd: '/',
      env: { ...env },
      stdio: ['ignore', 'ignore', 'pipe', ...descriptors.slice(0, last + 1)],
      // Ctrl-C on berth's terminal reaches berth only, which then stops its servers in order.
      detached: true,
    }) as Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  } catch (error) {
    if (report !== null) closeSync(report.ours)
    throw error
  } finally {
    if (report !== null) closeSync(report.theirs)
  }
}

/** Runs a process to its end; `said` is its error output. */
export async function runOnce(plan: SpawnPlan): Promise<{ code: number; said: string }> {
  const { process, socket, descriptors, report } = spawnWithSocket(plan)
  try {
    const said = await collectErrors(process.stderr).text
    return { code: await process.exited, said }
  } finally {
    for (const end of [socket, descriptors, report]) if (end !== null) closeSync(end)
  }
}

/** Collects a process's error output, until its end or until `stop` is called. */
export function collectErrors(stream: ReadableStream<Uint8Array>): { text: Promise<string>; stop(): void } {
  const reader = stream.getReader()
  const read = async (): Promise<string> => {
    const decoder = new TextDecoder()
    let text = ''
    while (text.length < MAX_SAID) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
    return text.slice(0, MAX_SAID).trim()
  }
  return { text: read().catch(() => ''), stop: () => void reader.cancel().catch(() => {}) }
}

/** A few KiB fit into the socket's buffer, so this does not block. A process that has ended says why in its own words. */
function writeAndClose(fd: number, bytes: Uint8Array): void {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
  } catch (error) {
    if (codeOf(error) !== 'EPIPE') throw error
  } finally {
    closeSync(fd)
  }
}
