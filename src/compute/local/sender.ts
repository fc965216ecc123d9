import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import type { Connection } from '../../runtime/connection.ts'
import { descendantsAmong, findAgents, isHidden, listProcesses, readName, readProcess } from '../processes.ts'
import { Pace } from './pace.ts'
import { findTcpSockets, hasSocket, type TcpSocket } from './sockets.ts'

/** Programs that had the other end of a connection lately: a browser asks again and again. */
const KEPT_SENDERS = 8

/** Parents that a process may have above it, and times that one may end while it is looked at. */
const MAX_ANCESTORS = 10_000
const MAX_TRIES = 10

/** Searches for the programs at the other end of connections, and remembers the last ones. */
export class SenderSearch {
  /** Processes outside of servers in which the last senders were found, latest first. */
  #recent: number[] = []

  /**
   * Reports whether the other end of a TCP connection is in the hands of a process on a server, of this berth or of
   * another one of this user, by what the kernel says of sockets, descriptors and descent.
   *
   * What no program outside of servers is seen to have counts as a server's: a socket can be on its way from one
   * process to another while one looks. What the system does not show at all (no /proc/net/tcp, not berth's own
   * network), and what comes from another machine or from another user's program, does not; nor does anything where no
   * server runs.
   */
  async isSentFromServer({ remoteAddress, remotePort, localPort }: Connection): Promise<boolean> {
    const agents = findAgents()
    if (agents.length === 0) return false
    const sockets = await findTcpSockets([remotePort, localPort])
    const shown = sockets?.some(({ listens, port, inode }) => listens && port === localPort && inode !== '0')
    if (!sockets || !shown) return false
    const addresses = inTable(remoteAddress)
    const ends = sockets.filter(
      (one) => one.port === remotePort && one.remotePort === localPort && addresses.includes(one.address),
    )
    if (ends.length === 0) return isOwnAddress(remoteAddress)
    for (const end of ends) if (await this.#isServers(end, agents)) return true
    return false
  }

  async #isServers({ inode, uid }: TcpSocket, agents: readonly number[]): Promise<boolean> {
    // Closed already: the party that sent it waits for no answer.
    if (inode === '0') return true
    const processes = listProcesses()
    const inside = descendantsAmong(processes, agents)
    const outside = processes.map(({ pid }) => pid).filter((pid) => !inside.has(pid))
    const holder = await this.#findHolder(inode, outside)
    // One that was outside in the list may have lost its parent while that was made.
    if (holder !== null) return isOnServer(holder, agents)
    // The descriptors of another user's process may not be looked into, on servers all run as berth's own user. Nor may
    // those of what serves a login by ssh, where a browser comes from far away.
    return uid === process.geteuid?.() && !outside.some(servesLogin)
  }

  /**
   * Returns a process that has a socket; null if none is seen. Of processes on servers nothing is looked at, however
   * much they have.
   */
  async #findHolder(inode: string, outside: readonly number[]): Promise<number | null> {
    const pace = new Pace()
    const known = new Set(this.#recent)
    // The latest first: a browser is younger than the machine.
    const order = [
      ...this.#recent.filter((pid) => outside.includes(pid)),
      ...outside.filter((pid) => !known.has(pid)).sort((a, b) => b - a),
    ]
    for (const pid of order) {
      if (!(await hasSocket(pid, inode, pace))) continue
      this.#recent = [pid, ...this.#recent.filter((other) => other !== pid)].slice(0, KEPT_SENDERS)
      return pid
    }
    return null
  }
}

const servesLogin = (pid: number): boolean => /^sshd(?:-session)?$/.test(readName(pid) ?? '')

/**
 * Reports whether a process descends from an agent: it adopts what loses its parent, or a PID namespace does. One
 * that ends while it is looked at, time and again, counts as such.
 */
function isOnServer(pid: number, agents: readonly number[]): boolean {
  // What berth itself runs in is not beneath berth, though it may be a server of another one.
  const own = new Set(ancestorsOf(process.pid) ?? [])
  const above = ancestorsOf(pid)
  if (above === null) return true
  const first = above.find((one) => own.has(one) || agents.includes(one))
  return first !== undefined && !own.has(first)
}

/**
 * Returns a process, its parent and so on, as far as they are shown; null if one of them ends meanwhile, time and
 * again.
 */
function ancestorsOf(pid: number): number[] | null {
  const chain: number[] = []
  let tries = 0
  for (let next = pid; next > 0; ) {
    if (chain.length > MAX_ANCESTORS) return null
    const info = readProcess(next)
    if (info !== null) {
      chain.push(next)
      next = info.parent
      continue
    }
    // Another user's, where each sees only their own (hidepid).
    if (isHidden(next)) return chain
    // Its children have another parent now.
    const child = chain.pop()
    tries += 1
    if (child === undefined || tries > MAX_TRIES) return null
    next = child
  }
  return chain
}

/** Returns how /proc/net/tcp and tcp6 write an address: as words of four bytes, each in the machine's byte order. */
function inTable(address: string): string[] {
  const parsed = plain(address)
  const written = words(parsed.toByteArray())
  return parsed.kind() === 'ipv4' ? [written, `0000000000000000FFFF0000${written}`] : [written]
}

const words = (bytes: number[]): string =>
  Array.from({ length: bytes.length / 4 }, (_, word) =>
    Buffer.from(bytes.slice(4 * word, 4 * word + 4).reverse()).toString('hex'),
  )
    .join('')
    .toUpperCase()

/** Reports whether an address is one of this machine. */
function isOwnAddress(address: string): boolean {
  const parsed = plain(address)
  if (parsed.range() === 'loopback') return true
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  return own.some((one) => plain(one.address).toString() === parsed.toString())
}

/** Returns an address without its zone, IPv4 as such also where it stands in IPv6. */
const plain = (address: string) => ipaddr.process(address.replace(/%.*$/, ''))
