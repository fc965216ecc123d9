import { readdirSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import type { Connection } from '../driver.ts'
import { isAgent, readProcess } from '../processes.ts'
import { Pace } from './pace.ts'
import { readTcpSockets, socketsOf, type TcpSocket } from './sockets.ts'

/** Processes that had the other end of a connection lately: a browser asks again and again. */
const KEPT_SENDERS = 8

/** Parents that are looked up for one process at most. */
const MAX_ANCESTORS = 10_000

/** Processes in which the last senders were found, latest first. */
let senders: number[] = []

/**
 * Whether the other end of a TCP connection is in the hands of a process on a server, of this berth or of another one
 * of this machine. Looked up in what the kernel says of sockets and processes, which no process can change about itself.
 *
 * What is nobody's, as a socket that is on its way from one process to another, counts as a server's: a process that
 * hides must not pass. What the system does not show at all (no /proc/net/tcp, or not berth's own network), and what
 * comes from another machine or from another user's program, does not. Never throws.
 */
export async function isSentFromServer(connection: Connection): Promise<boolean> {
  const sockets = readTcpSockets()
  const { remoteAddress, remotePort, localPort } = connection
  const shown = sockets?.some(({ listens, port, inode }) => listens && port === localPort && inode !== '0')
  if (!sockets || !shown) return false
  const addresses = inTable(remoteAddress)
  const ends = sockets.filter(
    (one) => one.port === remotePort && one.remotePort === localPort && addresses.includes(one.address),
  )
  if (ends.length === 0) return isOwnAddress(remoteAddress)
  for (const end of ends) if (await isServers(end)) return true
  return false
}

async function isServers({ inode, uid }: TcpSocket): Promise<boolean> {
  // Closed already: whoever sent it waits for no answer.
  if (inode === '0') return true
  const pid = await holderOf(inode)
  // The descriptors of another user's process may not be looked into. On servers all run as berth's own.
  if (pid === null) return uid === process.geteuid?.()
  return isOnServer(pid)
}

/** A process that has a socket; null where none is seen. */
async function holderOf(inode: string): Promise<number | null> {
  const latest = senders.find((pid) => socketsOf(pid)?.includes(inode))
  const found = latest ?? (await searchHolder(inode))
  if (found !== null) senders = [found, ...senders.filter((pid) => pid !== found)].slice(0, KEPT_SENDERS)
  return found
}

async function searchHolder(inode: string): Promise<number | null> {
  const pace = new Pace()
  // The latest processes first: a browser is younger than the machine.
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  for (const pid of pids.map(Number).sort((a, b) => b - a)) {
    if (pace.due) await pace.rest()
    if (socketsOf(pid)?.includes(inode)) return pid
  }
  return null
}

/**
 * Whether a process descends from an agent. Up to the agent there is no other way: it adopts what loses its parent, or
 * a PID namespace does.
 */
function isOnServer(pid: number): boolean {
  const own = new Set(ancestorsOf(process.pid) ?? [])
  const above = ancestorsOf(pid)
  // It ended while it was looked at.
  if (above === null) return true
  for (const one of above) {
    // What berth itself runs in is not beneath berth, though it may be a server of another one.
    if (own.has(one)) return false
    if (isAgent(one)) return true
  }
  return false
}

/** A process, its parent and so on; null where one of them ends meanwhile, time and again. */
function ancestorsOf(pid: number): number[] | null {
  const chain: number[] = []
  let tries = 0
  for (let next = pid; next > 0 && chain.length < MAX_ANCESTORS; ) {
    const info = readProcess(next)
    if (info !== null) {
      chain.push(next)
      next = info.parent
      continue
    }
    // Its children have another parent now.
    const child = chain.pop()
    if (child === undefined || ++tries > 10) return null
    next = child
  }
  return chain
}

/** How /proc/net/tcp and tcp6 write an address: as words of four bytes, each in the machine's byte order. */
function inTable(address: string): string[] {
  const parsed = ipaddr.process(address)
  const written = words(parsed.toByteArray())
  return parsed.kind() === 'ipv4' ? [written, `0000000000000000FFFF0000${written}`] : [written]
}

const words = (bytes: number[]): string =>
  Array.from({ length: bytes.length / 4 }, (_, word) =>
    Buffer.from(bytes.slice(4 * word, 4 * word + 4).reverse()).toString('hex'),
  )
    .join('')
    .toUpperCase()

/** Whether an address is one of this machine. */
function isOwnAddress(address: string): boolean {
  const parsed = ipaddr.process(address)
  if (parsed.range() === 'loopback') return true
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  return own.some((one) => ipaddr.process(one.address).toString() === parsed.toString())
}
