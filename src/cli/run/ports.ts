import type { PortRange } from '../../config/config.ts'
import { StartupError } from '../../errors.ts'

/*
 * Blocks of ports below those that systems give out by themselves: what a project was promised for life must not be
 * given to somebody's connection meanwhile.
 */
const FIRST = 20_000
const END = 32_768
const SIZE = 128

/** How many instances can have a block at the same time. */
const BLOCKS = Math.floor((END - FIRST) / SIZE)

/** A block of ports that no other instance takes. */
export interface PortBlock {
  readonly ports: PortRange
  /** Gives it back. */
  release(): void
}

/**
 * Takes a block of ports for the projects of one instance. Its first port is listened on for as long as the block is
 * held: the kernel gives it to one process of the machine and takes it back when that ends, however it ends.
 *
 * @param prefer number of the block to begin with
 * @throws StartupError where all are taken
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

function listenExclusively(port: number): Bun.TCPSocketListener<undefined> | null {
  try {
    const socket = { open: (opened: Bun.Socket<undefined>) => void opened.end(), data() {} }
    const listener = Bun.listen<undefined>({ hostname: '127.0.0.1', port, exclusive: true, socket })
    listener.unref()
    return listener
  } catch {
    return null
  }
}
