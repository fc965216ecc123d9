/** The TCP sockets of this machine, and the processes that have them. */
import type { Pace } from '../runtime/pace.ts'
import { darwinSockets } from './darwin/processes.ts'
import { linuxSockets } from './linux/sockets.ts'
import { processes } from './processes.ts'
import type { TcpSockets } from './system.ts'

const sockets: TcpSockets = process.platform === 'darwin' ? darwinSockets() : linuxSockets

/** See `TcpSockets`. */
export const { listening: readListeningSockets, withLocalPorts: findTcpSockets } = sockets

/** Returns the kernel's numbers of the sockets that a process has; null if its descriptors may not be looked into. */
export function socketsOf(pid: number): string[] | null {
  const descriptors = processes.descriptors(pid)
  return descriptors && Array.from(descriptors).flatMap(({ target }) => numberIn(target) ?? [])
}

/** Does the same for a process that may have very many descriptors. */
export async function findSocketsOf(pid: number, pace: Pace): Promise<string[] | null> {
  const descriptors = processes.descriptors(pid)
  if (descriptors === null) return null
  const found: string[] = []
  for (const { target } of descriptors) {
    if (pace.due) await pace.rest()
    const number = numberIn(target)
    if (number !== null) found.push(number)
  }
  return found
}

const numberIn = (target: string): string | null => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? null

/** Reports whether a process has a socket; false if its descriptors are not readable. */
export async function hasSocket(pid: number, inode: string, pace: Pace): Promise<boolean> {
  for (const { target } of processes.descriptors(pid) ?? []) {
    if (pace.due) await pace.rest()
    if (target === `socket:[${inode}]`) return true
  }
  return false
}
