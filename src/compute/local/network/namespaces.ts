import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import type { SocketCalls } from './socket-calls.ts'

/** Longest report; bwrap's has about 200 characters. @bound program */
const MAX_REPORT = 4096

/** Milliseconds between two looks at whether a user namespace has users. */
const USERS_MS = 1

/** CAP_SYS_ADMIN of capabilities(7), as a bit. */
const SYS_ADMIN = 1n << 21n

/** The namespaces of a server's network, as open descriptors. */
export interface Namespaces {
  readonly network: number
  /** The user namespace that owns it, if a process has to join that to configure the network; else null. */
  readonly owner: number | null
}

/**
 * Waits until bwrap has made the namespaces of a sandbox, which it does before all else, and opens the network's.
 *
 * @param report berth's end of the descriptor that bwrap writes to, see `--info-fd` of bwrap(1); it is closed
 * @param signal aborted when the sandbox has ended
 * @returns a descriptor, the caller's to close; null if bwrap does not report it, or it may not be opened now
 */
export async function findNetwork(report: number, signal: AbortSignal): Promise<number | null> {
  try {
    const text = await readReport(report)
    const field = (name: string): number => Number(new RegExp(`"${name}": *(\\d+)`).exec(text)?.[1])
    const pid = field('child-pid')
    const network = openSync(`/proc/${pid}/ns/net`, 'r')
    try {
      // The process may have ended, and its number may be another's. No namespace has the inode of one that is open.
      if (fstatSync(network).ino !== field('net-namespace')) throw new Error('It is another network.')
      if (!mayJoinNetworks()) await untilUsers(pid, signal)
      return network
    } catch (error) {
      closeSync(network)
      throw error
    }
  } catch {
    return null
  }
}

/**
 * Returns the namespaces that a process joins to configure a network. If the kernel refuses that, returns null and closes
 * the descriptor.
 *
 * @param network descriptor of the network's namespace
 */
export function joinableNetwork(calls: Pick<SocketCalls, 'ownerOf'>, network: number): Namespaces | null {
  if (mayJoinNetworks()) return { network, owner: null }
  const owner = calls.ownerOf(network)
  if (owner !== null) return { network, owner }
  closeSync(network)
  return null
}

/** Reports whether this process may join networks of other user namespaces, as root may. */
function mayJoinNetworks(): boolean {
  const status = readFileSync('/proc/self/status', 'latin1')
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)/m.exec(status) ?? []
  return (BigInt(`0x${effective}`) & SYS_ADMIN) !== 0n
}

/**
 * Waits until the user namespace of a process has users. Before, a program that is started in it has no capability.
 * Throws the system's error if the process ends.
 */
async function untilUsers(pid: number, signal: AbortSignal): Promise<void> {
  while (readFileSync(`/proc/${pid}/uid_map`, 'latin1') === '') {
    signal.throwIfAborted()
    await Bun.sleep(USERS_MS)
  }
}

/** Reads to the end of the report, or of the process that writes it. */
async function readReport(fd: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const decoder = new TextDecoder()
  let text = ''
  const done = (): void => resolve(text)
  await Bun.connect({
    fd,
    socket: {
      data(socket, chunk) {
        text += decoder.decode(chunk, { stream: true })
        if (text.includes('}') || text.length > MAX_REPORT) socket.terminate()
      },
      close: done,
      error: done,
    },
  })
  return promise
}
