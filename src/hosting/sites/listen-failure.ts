import { closeSync, openSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'

/** Why a port cannot be listened on. */
export interface ListenFailure {
  /** The system's code; null if it gave none. */
  readonly code: string | null
  /** Whether another program has the port. */
  readonly isTaken: boolean
  /** Whether the machine lacks the address, as ::1 without IPv6. */
  readonly lacksAddress: boolean
  /** Cause and, unless it is taken, remedy, for a person. */
  readonly reason: string
}

/** Returns why listening on a port failed. */
export function listenFailure(error: unknown, host: string, port: number): ListenFailure {
  const code = codeOf(error) ?? codeWithoutDescriptor()
  const isTaken = code === 'EADDRINUSE'
  const lacksAddress = code === null || code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'
  const reason = isTaken
    ? `Port ${port} is taken by another program.`
    : `Port ${port} cannot be opened: ${causeOf(code, host)}`
  return { code, isTaken, lacksAddress, reason }
}

function causeOf(code: string | null, host: string): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'berth may not listen there. Low ports need privileges (Linux: net.ipv4.ip_unprivileged_port_start); start berth with other ports: --project-ports FIRST-LAST.'
    case 'EADDRNOTAVAIL':
      return `this machine does not have the address ${host} (any more). Start berth with one that it has: --host ADDRESS.`
    case 'EMFILE':
      return 'berth has as many files and connections open as it may. Start it with a larger limit: ulimit -n.'
    case 'ENFILE':
      return 'this machine has as many files open as it may (Linux: fs.file-max). End other programs.'
    default:
      return `the system refuses it${code === null ? '' : ` (${code})`}.`
  }
}

/** Returns EMFILE or ENFILE if no descriptor is free: Bun then gives no code. */
function codeWithoutDescriptor(): string | null {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return null
  } catch (error) {
    return codeOf(error) ?? null
  }
}
