import type { LoopbackAddress } from '../driver.ts'
import { findDescendants, readMarker } from '../processes.ts'
import { readTcpSockets, socketsOf, type TcpSocket } from './sockets.ts'

/**
 * The local addresses, as /proc/net/tcp writes them with words in the machine's byte order, by which a caller of each
 * loopback address is answered: the kernel takes the first of these that a socket is bound to.
 */
const ANSWERING: Readonly<Record<LoopbackAddress['host'], readonly string[]>> = {
  '127.0.0.1': [
    '0100007F',
    '0000000000000000FFFF00000100007F',
    '00000000',
    '0000000000000000FFFF000000000000',
    // Of any address in IPv6 most sockets take IPv4 as well.
    '0'.repeat(32),
  ],
  '::1': [`${'0'.repeat(24)}01000000`, '0'.repeat(32)],
}

/**
 * Where on this machine's loopback a command's processes listen: those below `root` that carry the command's marker,
 * and all that descend from them. The sockets are looked up in berth's own network, so that a sandbox with another one
 * cannot pass off what listens there; an address that another program answers at is left out, also where the command
 * has the same port on any address.
 *
 * @param root the host's pid of the sandbox's first process
 * @returns null where sockets or their owners cannot be seen
 */
export function listeningAddresses(root: number, marker: string): LoopbackAddress[] | null {
  const family = commandFamily(root, marker)
  if (family.size === 0) return []
  const all = readTcpSockets()?.filter(({ listens }) => listens)
  if (all === undefined) return null
  const owned = new Set<string>()
  let unseen = false
  for (const pid of family) {
    const sockets = socketsOf(pid)
    if (sockets === null) unseen = true
    for (const inode of sockets ?? []) owned.add(inode)
  }
  const ports = new Set(all.filter(({ inode }) => owned.has(inode)).map(({ port }) => port))
  const found = [...ports]
    .sort((a, b) => a - b)
    .flatMap((port) =>
      HOSTS.filter((host) => answers(host, port, all, owned)).map(
        (host): LoopbackAddress => ({ host, port }),
      ),
    )
  return found.length === 0 && unseen ? null : found
}

const HOSTS = ['127.0.0.1', '::1'] as const

/** Whether whoever connects there comes to one of the sockets that are owned. */
function answers(
  host: LoopbackAddress['host'],
  port: number,
  all: readonly TcpSocket[],
  owned: ReadonlySet<string>,
): boolean {
  const there = all.filter((one) => one.port === port)
  for (const address of ANSWERING[host]) {
    const bound = there.filter((one) => one.address === address)
    if (bound.length > 0) return bound.every(({ inode }) => owned.has(inode))
  }
  return false
}

/** The TCP ports that a process listens on, ascending; none where they cannot be seen. */
export function portsOf(pid: number): number[] {
  const owned = new Set(socketsOf(pid) ?? [])
  const all = readTcpSockets() ?? []
  const ports = all.filter(({ listens, inode }) => listens && owned.has(inode)).map(({ port }) => port)
  return [...new Set(ports)].sort((a, b) => a - b)
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
