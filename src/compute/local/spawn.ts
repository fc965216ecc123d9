import { closeSync, writeSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'

/** Most characters kept of a start's error output. */
const MAX_SAID = 2000

/** The descriptor on which a process reports the namespaces that it has made, and the first one of `SpawnPlan.files`. */
export const REPORT_FD = 6
export const FILES_FD = 7

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
  /** Whether the process reports on `REPORT_FD`. */
  reports?: boolean
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
  reports = false,
  files = [],
  userNamespace,
}: SpawnPlan): Spawned {
  const wanted = [true, input !== undefined, descriptors !== undefined, reports, ...files.map(() => true)]
  const more = wanted.slice(0, wanted.lastIndexOf(true) + 1)
  const process = Bun.spawn([...argv], {
    cwd: '/',
    env: { ...env },
    stdio: [
      ...(['ignore', 'ignore', 'pipe'] as const),
      ...more.map((isPipe) => (isPipe ? ('pipe' as const) : ('ignore' as const))),
      ...(userNamespace === undefined ? [] : [userNamespace]),
    ],
    // Ctrl-C on berth's terminal reaches berth only, which then stops its servers in order.
    detached: true,
  }) as Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  const ends = process.stdio as unknown as Array<number | null | undefined>
  const end = (descriptor: number): number => ends[descriptor] ?? -1
  for (const [index, bytes] of files.entries()) writeAndClose(end(FILES_FD + index), bytes)
  if (input !== undefined) writeAndClose(end(4), input)
  return {
    process,
    socket: end(3),
    descriptors: descriptors === undefined ? null : end(5),
    report: reports ? end(REPORT_FD) : null,
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
