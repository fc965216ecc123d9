import { closeSync, writeSync } from 'node:fs'

/** Most characters kept of a start's error output. */
const MAX_SAID = 2000

/**
 * A process to start. It has a socket to berth on descriptor 3, `input` to read on descriptor 4, and, if `descriptors`
 * is set (which requires `input`), a socket on descriptor 5 over which descriptors pass.
 */
export interface SpawnPlan {
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  input?: Uint8Array
  /** What passes: terminals, from berth, or sockets of the sandbox's own network, to berth. */
  descriptors?: 'terminals' | 'sockets'
}

/** A process under way. */
export interface Spawned {
  process: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  /** Berth's end of the socket pair; the caller's to close. */
  socket: number
  /** Berth's end of the socket for descriptors, the caller's to close too; null if none was asked for. */
  descriptors: number | null
}

/**
 * Starts a process. Must be called on the main thread: `--die-with-parent` follows the thread. Throws the system's
 * error if the program cannot be started.
 */
export function spawnWithSocket({ argv, env, input, descriptors }: SpawnPlan): Spawned {
  const process = Bun.spawn([...argv], {
    cwd: '/',
    env: { ...env },
    stdio: [
      ...(['ignore', 'ignore', 'pipe', 'pipe'] as const),
      ...(input === undefined ? [] : ['pipe' as const]),
      ...(descriptors === undefined ? [] : ['pipe' as const]),
    ],
    // Ctrl-C on berth's terminal reaches berth only, which then stops its servers in order.
    detached: true,
  }) as Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  const [, , , socket = -1, inputEnd = -1, descriptorsEnd] = process.stdio as unknown as Array<
    number | undefined
  >
  if (input !== undefined) writeAndClose(inputEnd, input)
  return { process, socket, descriptors: descriptorsEnd ?? null }
}

/** Runs a process to its end; `said` is its error output. */
export async function runOnce(plan: SpawnPlan): Promise<{ code: number; said: string }> {
  const { process, socket, descriptors } = spawnWithSocket(plan)
  try {
    const said = await collectErrors(process.stderr).text
    return { code: await process.exited, said }
  } finally {
    closeSync(socket)
    if (descriptors !== null) closeSync(descriptors)
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

/** A few KiB fit into the socket's buffer, so this does not block. */
function writeAndClose(fd: number, bytes: Uint8Array): void {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
  } finally {
    closeSync(fd)
  }
}
