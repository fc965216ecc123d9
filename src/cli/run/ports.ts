import type { PortRange } from '../../config/config.ts'
import { StartupError } from '../../errors.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'

/*
 * Range and size of the blocks. The range ends below the ephemeral ports, which the kernel may assign to any
 * connection: a project's port has to stay free for it.
 */
const FIRST = 20_000
const END = 32_768
const SIZE = 128

/** Number of blocks: instances that can have one at the same time. */
const BLOCKS = Math.floor((END - FIRST) / SIZE)

/** A block of ports reserved for one instance. */
interface PortBlock {
  readonly ports: PortRange
  /** Frees the block. */
  release(): void
}

/**
 * Reserves a block of ports for the projects of one instance, by listening on its first port. The kernel assigns that
 * port to one process and frees it when the process ends, even by a crash.
 *
 * @param prefer number of the block to try first
 * @throws StartupError if all are reserved, or this process may not listen
 */
export function takePortBlock(prefer: number): PortBlock {
  for (let tried = 0; tried < BLOCKS; tried += 1) {
    const first = FIRST + ((prefer + tried) % BLOCKS) * SIZE
    const guard = listenExclusively(first)
    if (guard === null) continue
    return { ports: { first: first + 1, last: first + SIZE - 1 }, release: () => guard.stop(true) }
  }
  throw new StartupError(
    `All blocks of ports from ${FIRST} to ${END - 1} are taken by other instances. Name a range with --project-ports FIRST-LAST.`,
  )
}

/** Listens on a port; returns null if another process does. */
function listenExclusively(port: number): Bun.TCPSocketListener<undefined> | null {
  try {
    const socket = { open: (opened: Bun.Socket<undefined>) => void opened.end(), data() {} }
    const listener = Bun.listen<undefined>({ hostname: '127.0.0.1', port, exclusive: true, socket })
    listener.unref()
    return listener
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return null
    throw new StartupError(
      `No ports can be reserved for projects: ${messageOf(error)}. Allow berth more open files (ulimit -n), or name a range with --project-ports FIRST-LAST.`,
    )
  }
}
