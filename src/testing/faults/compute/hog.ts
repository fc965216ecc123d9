import { ComputeError, type Sandbox } from '../../../compute/sandbox.ts'
import { processes } from '../../../system/processes.ts'

/** Bytes that a process which runs out of memory takes beyond the limit, as a part of it. */
const BEYOND = 0.1

/** Bytes of memory that the machine keeps in any case. */
const LEFT_TO_OTHERS = 2 ** 28

/** How long a process may take to run out of memory. */
const TIMEOUT_MS = 120_000

/** The exit code after SIGKILL. */
const KILLED = 137

/** Memory cannot be exhausted here. The message has the cause and the remedy. */
export class NoMemoryFault extends Error {
  override readonly name = 'NoMemoryFault'
}

/**
 * Returns a command that holds more memory than the server's limit until it is killed. `tail` keeps the bytes in its
 * own memory, no more than `memoryBytes` and a margin; its input ends with it.
 */
export function hogCommand(memoryBytes: number): string {
  const bytes = Math.ceil(memoryBytes * (1 + BEYOND))
  return `{ head -c ${bytes} /dev/zero; while echo; do sleep 0.2; done; } 2>/dev/null | tail -c ${bytes} >/dev/null`
}

/**
 * Exhausts the memory of a server with a real process.
 *
 * @throws NoMemoryFault if no limit holds or the machine has too little memory, ComputeError if the process was not
 * killed
 */
export async function exhaustMemory(sandbox: Sandbox): Promise<void> {
  checkMemory(sandbox)
  const { limit, enforcedBy } = sandbox.faultInjection.memory
  const { exit } = sandbox.exec({
    command: hogCommand(limit),
    timeoutMs: TIMEOUT_MS,
    background: 'ends',
    onOutput: () => {},
  })
  const { exitCode } = await exit
  if (exitCode === KILLED) return
  throw new ComputeError(
    `A process that took more than ${limit} bytes was not ended by the ${enforcedBy} (it exited with ${exitCode}).`,
  )
}

/**
 * Checks that a process of the server can safely be made to run out of memory.
 *
 * @throws NoMemoryFault if no limit holds the server, or the machine has too little memory left
 */
export function checkMemory({ faultInjection }: Sandbox): void {
  const { limit, enforcedBy } = faultInjection.memory
  if (enforcedBy === 'none') {
    throw new NoMemoryFault(
      'Nothing holds a server to its memory on this machine, so that none can run out of it alone. "berth doctor" says what is missing.',
    )
  }
  const available = processes.availableMemory()
  const needed = Math.ceil(limit * (1 + BEYOND)) + LEFT_TO_OTHERS
  if (available === null || available >= needed) return
  throw new NoMemoryFault(
    `A server that runs out of its ${limit} bytes of memory needs ${needed} bytes of this machine, which has ${available} left. Use a smaller tier, or a plan with less memory.`,
  )
}
