import ipaddr from 'ipaddr.js'
import type { Connection } from '../../runtime/connection.ts'
import { once } from '../../runtime/once.ts'
import { Pace } from '../../runtime/pace.ts'
import { loadFindConnectedSocket } from '../../system/connected-socket.ts'
import { interfaceAddressesReader } from '../../system/interface-addresses.ts'
import { findTcpSockets, hasSocket } from '../../system/sockets.ts'
import type { ConnectedSocket, SocketOwner } from '../../system/system.ts'
import type { Sender } from '../driver.ts'
import {
  descendantsAmong,
  findSandboxds,
  isHidden,
  listProcesses,
  readName,
  readProcess,
} from '../processes.ts'

/** Number of recent senders to remember, because a browser sends many requests. */
const KEPT_SENDERS = 8

/** Number of sockets to remember that belong to programs outside of servers. A browser has about six. */
const KEPT_SOCKETS = 256

/** Most ancestors of a process, and most attempts if one ends during the search. @bound program */
const MAX_ANCESTORS = 10_000
const MAX_TRIES = 10

/** Finds the programs at the other end of connections, and remembers recent ones. */
export class SenderSearch {
  /** Recent senders, which were outside of servers; those found last come first. */
  #recent: number[] = []
  /** The cookies of sockets that were found outside of servers, the oldest first. */
  readonly #outside = new Set<bigint>()
  readonly #findConnectedSocket = once(loadFindConnectedSocket)
  readonly #ownAddresses = interfaceAddressesReader()

  /**
   * Reports whether a process on a server, of this berth or another one of this user, has the other end of a TCP
   * connection. Uses what the kernel shows of sockets, descriptors and descent.
   *
   * The sender is unknown if the socket has no visible owner: it is closed, as a browser's whose page was left, or is
   * passed between processes during the search. Returns `elsewhere` for sockets that the system does not show (no
   * /proc/net/tcp, another network namespace), for other machines, for other users' programs, and if no server runs.
   *
   * A search takes milliseconds. Of a connection by loopback one is enough: the socket stays with its program, unless
   * that program gives it away.
   */
  async senderOf(connection: Connection): Promise<Sender> {
    const end = this.#findLoopbackEnd(connection)
    if (end !== null && this.#outside.has(end.cookie)) return 'elsewhere'
    const sender = await this.#search(connection, end)
    if (sender === 'elsewhere' && end !== null) this.#remember(end)
    return sender
  }

  /** Reports whether an address is this machine's. */
  #isOwnAddress(address: string): boolean {
    const parsed = plain(address)
    return parsed.range() === 'loopback' || this.#ownAddresses().includes(parsed.toString())
  }

  async #search(connection: Connection, end: ConnectedSocket | null): Promise<Sender> {
    const sandboxds = findSandboxds()
    if (sandboxds.length === 0) return 'elsewhere'
    if (end !== null) return this.#ownerOf(end, sandboxds)
    const { remoteAddress, remotePort, localPort } = connection
    const sockets = await findTcpSockets([remotePort, localPort])
    const shown = sockets?.some(({ listens, port, inode }) => listens && port === localPort && inode !== '0')
    if (!sockets || !shown) return 'elsewhere'
    const addresses = inTable(remoteAddress)
    const ends = sockets.filter(
      (one) => one.port === remotePort && one.remotePort === localPort && addresses.includes(one.address),
    )
    if (ends.length === 0) return this.#isOwnAddress(remoteAddress) ? 'unknown' : 'elsewhere'
    for (const end of ends) {
      const sender = await this.#ownerOf(end, sandboxds)
      if (sender !== 'elsewhere') return sender
    }
    return 'elsewhere'
  }

  #remember({ inode, cookie }: ConnectedSocket): void {
    if (inode === '0') return
    this.#outside.add(cookie)
    const [oldest] = this.#outside
    if (this.#outside.size > KEPT_SOCKETS && oldest !== undefined) this.#outside.delete(oldest)
  }

  /** Returns the other end of a connection by loopback; null if the kernel does not show exactly that one. */
  #findLoopbackEnd({
    remoteAddress,
    remotePort,
    localLoopback,
    localPort,
  }: Connection): ConnectedSocket | null {
    // Without a name for the interface, and in the family of the address that berth listens on.
    if (localLoopback === null || remoteAddress !== localLoopback) return null
    return this.#findConnectedSocket()({
      address: remoteAddress,
      port: remotePort,
      peerAddress: localLoopback,
      peerPort: localPort,
    })
  }

  async #ownerOf({ inode, uid }: SocketOwner, sandboxds: readonly number[]): Promise<Sender> {
    // Already closed: its sender does not wait for a response.
    if (inode === '0') return 'unknown'
    const pace = new Pace()
    // Other searches find more meanwhile.
    const recent = this.#recent
    for (const pid of recent) if (await hasSocket(pid, inode, pace)) return placeOf(pid, sandboxds)
    const processes = listProcesses()
    const inside = descendantsAmong(processes, sandboxds)
    const outside = processes.map(({ pid }) => pid).filter((pid) => !inside.has(pid))
    const candidates = outside.filter((pid) => !recent.includes(pid))
    const holder = await this.#findHolder(inode, candidates, pace)
    // A listed process may have lost its parent since.
    if (holder !== null) return placeOf(holder, sandboxds)
    // Descriptors of other users' processes are not readable, but processes on servers run as berth's own user. Those
    // of an ssh login are not readable either, and a remote browser may use one.
    if (uid !== process.geteuid?.() || outside.some(servesLogin)) return 'elsewhere'
    // Refused in any case: this only tells which program it was.
    for (const pid of inside) if (await hasSocket(pid, inode, pace)) return 'server'
    return 'unknown'
  }

  /**
   * Returns the one of some processes that has a socket; null if none is visible. The caller leaves out processes on
   * servers, however many they are.
   */
  async #findHolder(inode: string, candidates: readonly number[], pace: Pace): Promise<number | null> {
    // The latest first: a browser is younger than the machine.
    for (const pid of candidates.toSorted((one, other) => other - one)) {
      if (!(await hasSocket(pid, inode, pace))) continue
      this.#recent = [pid, ...this.#recent.filter((other) => other !== pid)].slice(0, KEPT_SENDERS)
      return pid
    }
    return null
  }
}

const servesLogin = (pid: number): boolean => /^sshd(?:-session)?$/.test(readName(pid) ?? '')

const placeOf = (pid: number, sandboxds: readonly number[]): Sender =>
  isOnServer(pid, sandboxds) ? 'server' : 'elsewhere'

/**
 * Reports whether a process descends from a sandboxd. Orphans do too, because sandboxd or its PID namespace adopts
 * them. A process that repeatedly ends during the search counts as a descendant.
 */
function isOnServer(pid: number, sandboxds: readonly number[]): boolean {
  // Berth's own ancestors do not count, even if berth runs on a server of another berth.
  const own = new Set(ancestorsOf(process.pid) ?? [])
  const above = ancestorsOf(pid)
  if (above === null) return true
  const first = above.find((one) => own.has(one) || sandboxds.includes(one))
  return first !== undefined && !own.has(first)
}

/** Returns a process and its visible ancestors; null if processes repeatedly end during the search. */
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
    // Another user's, on a system that hides these (hidepid).
    if (isHidden(next)) return chain
    // Its children have another parent now.
    const child = chain.pop()
    tries += 1
    if (child === undefined || tries > MAX_TRIES) return null
    next = child
  }
  return chain
}

/** Formats an address as in /proc/net/tcp and tcp6: words of four bytes, each in the machine's byte order. */
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

/** Parses an address without its zone; IPv4 inside IPv6 becomes IPv4. */
const plain = (address: string) => ipaddr.process(address.replace(/%.*$/, ''))
