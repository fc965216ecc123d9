import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { addressKind, isAddress } from '../../../../runtime/address.ts'
import type { NameResolver } from '../../../../runtime/name-resolver.ts'
import { type Question, RCODE, RECORD, readQuestion, writeResponse } from './dns-message.ts'
import { isLoopbackName } from './policy.ts'
import { ReceivedBytes } from './received-bytes.ts'

/** Milliseconds to wait for the machine's name servers. */
const FORWARD_MS = 5_000

/** Addresses whose names are kept of a server; the oldest are forgotten. @bound program */
const MOST_ADDRESSES = 10_000

/** Names that are kept of an address; the oldest are forgotten. @bound program */
const MOST_NAMES = 100

/**
 * Names that are looked up for a server at a time, and queries of other types that are passed on. Those that are more
 * fail, so a server cannot fill berth's memory while the machine's name servers are silent.
 * @bound program
 */
const MOST_LOOK_UPS = 250
const MOST_FORWARDED = 32

/** The machine's resolver. */
type Resolver = Pick<NameResolver, 'lookUp' | 'servers'>

/** Decides about names for the name server of one server. */
interface NameRules {
  /** Returns how a name is refused, or null if it may be resolved. */
  refusal(name: string): 'REFUSED' | 'NXDOMAIN' | 'SERVFAIL' | null
}

/**
 * Answers a server's DNS queries by the machine's resolver, and remembers which names led to which address. Names of
 * loopback are answered with loopback (RFC 6761, section 6.3).
 */
export class NameServer {
  readonly #rules: NameRules
  readonly #resolver: Resolver
  readonly #admit: () => (() => void) | null
  readonly #names = new Map<string, Set<string>>()
  readonly #underWay = new Map<string, Promise<string[]>>()
  #forwarding = 0

  /**
   * @param resolver the machine's, shared by all servers
   * @param admit takes the room of a connection for a query that is passed on, and returns a function that gives it
   *   back; null if there is none
   */
  constructor(rules: NameRules, resolver: Resolver, admit: () => (() => void) | null) {
    this.#rules = rules
    this.#resolver = resolver
    this.#admit = admit
  }

  /** Returns the names that were resolved to an address. */
  namesOf(address: string): string[] {
    return [...(this.#names.get(address) ?? [])]
  }

  /** Returns the IPv4 addresses to which a name was resolved. */
  ipv4Of(name: string): string[] {
    return [...this.#names].flatMap(([address, names]) =>
      names.has(name) && !address.includes(':') ? [address] : [],
    )
  }

  /**
   * Looks up the addresses of a name. The result is empty if there is no such name.
   *
   * @param options `search`: also looks in the machine's search domains
   * @throws Error if the machine's name servers fail, or too many names are being looked up
   */
  resolve(name: string, { search }: { search: boolean }): Promise<string[]> {
    const key = `${name} ${search}`
    const underWay = this.#underWay.get(key)
    if (underWay) return underWay
    if (this.#underWay.size >= MOST_LOOK_UPS)
      return Promise.reject(new Error('Too many names are looked up.'))
    const found = this.#resolve(name, search).finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, found)
    return found
  }

  /**
   * Answers a query.
   *
   * @param stream whether it came over TCP
   * @returns the response; null if the bytes are no query, or nobody answers it
   */
  async answer(query: Uint8Array, stream: boolean): Promise<Uint8Array | null> {
    const question = readQuestion(query)
    if (question === null) return null
    const { name, type } = question
    const isOfAddresses = type === RECORD.A || type === RECORD.AAAA
    const version = type === RECORD.A ? 'ipv4' : 'ipv6'
    if (isLoopbackName(name)) {
      if (!isOfAddresses) return writeResponse(question, RCODE.NOERROR)
      return writeResponse(question, RCODE.NOERROR, [version === 'ipv4' ? '127.0.0.1' : '::1'])
    }
    const refusal = this.#rules.refusal(name)
    if (refusal !== null) return writeResponse(question, RCODE[refusal])
    // Hints of addresses would hide from berth which name a connection is for.
    if (type === RECORD.HTTPS || type === RECORD.ANY) return writeResponse(question, RCODE.NOERROR)
    if (!isOfAddresses) return await this.#forward(question, stream)
    try {
      const all = await this.resolve(name, { search: false })
      if (all.length === 0) return writeResponse(question, RCODE.NXDOMAIN)
      // An IPv6 connection that berth cannot continue would have been accepted already, so that programs would not try
      // IPv4.
      if (version === 'ipv6' && !hasIpv6()) return writeResponse(question, RCODE.NOERROR)
      const fitting = all.filter((address) => ipaddr.parse(address).kind() === version)
      return writeResponse(question, RCODE.NOERROR, fitting)
    } catch {
      return writeResponse(question, RCODE.SERVFAIL)
    }
  }

  async #resolve(name: string, search: boolean): Promise<string[]> {
    const addresses = await this.#resolver.lookUp(name, { search })
    for (const address of addresses) this.#remember(ipaddr.process(address).toString(), name)
    return addresses
  }

  /** Passes a query on to the first of the machine's name servers. Returns null if it does not answer in time. */
  async #forward(question: Question, stream: boolean): Promise<Uint8Array | null> {
    const release = this.#forwarding < MOST_FORWARDED ? this.#admit() : null
    if (release === null) return writeResponse(question, RCODE.SERVFAIL)
    this.#forwarding += 1
    try {
      const [server] = await this.#resolver.servers()
      return server === undefined ? null : await forward(server, question, stream)
    } finally {
      this.#forwarding -= 1
      release()
    }
  }

  #remember(address: string, name: string): void {
    const names = this.#names.get(address) ?? new Set()
    // The newest is the last.
    names.delete(name)
    dropOldest(names.add(name), MOST_NAMES)
    this.#names.delete(address)
    dropOldest(this.#names.set(address, names), MOST_ADDRESSES)
  }
}

/** Removes the first entry of a collection that has more than it may. */
function dropOldest(collection: Map<string, unknown> | Set<string>, most: number): void {
  const [oldest] = collection.keys()
  if (collection.size > most && oldest !== undefined) collection.delete(oldest)
}

/** Reports whether this machine has an IPv6 address beyond its own links. */
function hasIpv6(): boolean {
  const all = Object.values(networkInterfaces()).flatMap((interfaces) => interfaces ?? [])
  return all.some(
    ({ family, internal, address }) =>
      family === 'IPv6' && !internal && ['public', 'uniqueLocal'].includes(addressKind(address, () => [])),
  )
}

/** Passes a query on to a name server, which is written as `dns.getServers` does. */
async function forward(server: string, { query }: Question, stream: boolean): Promise<Uint8Array | null> {
  const [, bracketed, plain, digits] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(server) ?? []
  const hostname = bracketed ?? plain ?? server
  if (!isAddress(hostname)) return null
  const port = Number(digits ?? 53)
  const answered = Promise.withResolvers<Uint8Array | null>()
  const timer = setTimeout(() => answered.resolve(null), FORWARD_MS)
  const close = stream
    ? await askByStream(hostname, port, query, answered.resolve)
    : await askByDatagram(hostname, port, query, answered.resolve)
  const answer = await answered.promise
  clearTimeout(timer)
  close()
  return answer
}

type Answered = (answer: Uint8Array | null) => void

async function askByDatagram(
  hostname: string,
  port: number,
  query: Uint8Array,
  answered: Answered,
): Promise<() => void> {
  const socket = await Bun.udpSocket({
    connect: { hostname, port },
    socket: {
      data: (_, answer) => {
        if (answer.length > 1 && answer[0] === query[0] && answer[1] === query[1]) answered(answer)
      },
      error: () => answered(null),
    },
  })
  socket.send(query)
  return () => socket.close()
}

async function askByStream(
  hostname: string,
  port: number,
  query: Uint8Array,
  answered: Answered,
): Promise<() => void> {
  const received = new ReceivedBytes()
  const socket = await Bun.connect({
    hostname,
    port,
    socket: {
      data(_, bytes) {
        received.append(bytes)
        const length = received.bytes.length < 2 ? null : received.bytes.readUInt16BE(0)
        if (length !== null && received.bytes.length >= length + 2) {
          answered(received.take(length + 2).subarray(2))
        }
      },
      close: () => answered(null),
      error: () => answered(null),
      connectError: () => answered(null),
    },
  }).catch(() => null)
  socket?.write(framed(query))
  return () => socket?.terminate()
}

/** Returns a DNS message with its length before it, as TCP carries it (RFC 1035, section 4.2.2). */
export function framed(message: Uint8Array): Uint8Array {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}
