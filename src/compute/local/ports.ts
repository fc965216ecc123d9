import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { findDescendants, readMarker } from '../processes.ts'

/** The state of a listening socket in /proc/net/tcp. */
const LISTENING = '0A'

/**
 * Addresses as /proc/net/tcp writes them, words in the machine's byte order, that a caller of 127.0.0.1 or ::1
 * reaches: these two, any address, and their forms in IPv6.
 */
const REACHABLE = new Set([
  '00000000',
  '0100007F',
  '0'.repeat(32),
  `${'0'.repeat(24)}01000000`,
  '0000000000000000FFFF00000100007F',
  '0000000000000000FFFF000000000000',
])

/**
 * TCP ports, ascending, of this machine's loopback on which a command's processes listen: those below `root` that
 * carry the command's marker, and all that descend from them. The sockets are looked up in berth's own network, so
 * that a sandbox with another one cannot pass off what listens there.
 *
 * @param root the host's pid of the sandbox's first process
 */
export function listeningPorts(root: number, marker: string): number[] {
  const family = commandFamily(root, marker)
  if (family.size === 0) return []
  const listening = new Map([...readListening('tcp'), ...readListening('tcp6')])
  if (listening.size === 0) return []
  const ports = new Set<number>()
  for (const pid of family) {
    for (const inode of socketsOf(pid)) {
      const port = listening.get(inode)
      if (port !== undefined) ports.add(port)
    }
  }
  return [...ports].sort((a, b) => a - b)
}

function commandFamily(root: number, marker: string): Set<number> {
  const family = new Set<number>()
  for (const pid of findDescendants(root)) {
    if (family.has(pid) || readMarker(pid) !== marker) continue
    family.add(pid)
    for (const descendant of findDescendants(pid)) family.add(descendant)
  }
  return family
}

/** Ports by socket inode. */
function readListening(table: 'tcp' | 'tcp6'): Array<[inode: string, port: number]> {
  return read(`/proc/net/${table}`)
    .split('\n')
    .flatMap((line): Array<[string, number]> => {
      const fields = line.trim().split(/\s+/)
      const [, local = '', , state] = fields
      const [address = '', port = ''] = local.split(':')
      const inode = fields[9]
      if (state !== LISTENING || inode === undefined || !REACHABLE.has(address)) return []
      return [[inode, Number.parseInt(port, 16)]]
    })
}

function socketsOf(pid: number): string[] {
  return descriptorsOf(pid).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
    } catch {
      // Closed meanwhile.
      return []
    }
  })
}

function descriptorsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch {
    // It has ended, or may not be looked into: nothing of it is known.
    return []
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // A kernel without IPv6.
    return ''
  }
}
