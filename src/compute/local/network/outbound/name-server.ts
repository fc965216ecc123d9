import { getServers } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { addressKind, isAddress } from '../../../../runtime/address.ts'
import { codeOf } from '../../../../runtime/error-info.ts'
import { type Question, RCODE, RECORD, readQuestion, writeResponse } from './dns-message.ts'
import { isLoopbackName } from './policy.ts'
import { ReceivedBytes } from './received-bytes.ts'

/** Milliseconds to wait for the machine's name servers. */
const FORWARD_MS = 5_000

/** Addresses whose names are kept of a server; the oldest are forgotten. */
const MOST_ADDRESSES = 10_000

/** Codes of look-ups that found no such name, or no address of it. */
const NO_SUCH_NAME: readonly unknown[] = ['ENOTFOUND', 'ENODATA', 'DNS_ENOTFOUND', 'DNS_ENODATA']

/** Decides about names for the name server of one server. */
export interface NameRules {
  /** Returns how a name is refused, or null if it may be resolved. */
  refusal(name: string): 'REFUSED' | 'NXDOMAIN' | 'SERVFAIL' | null
}

/**
 * Answers a server's DNS queries by the machine's resolver, and remembers which names led to which address. Names of
 * loopback are answered with loopback (RFC 6761, section 6.3).
 */
export class NameServer {
  readonly #rules: NameRules
  readonly #names = new Map<string, Set<string>>()
  readonly #underWay = new Map<string, Promise<string[]>>()

  constructor(rules: NameRules) {
    this.#rules = rules
  }

  /** Returns the names that were resolved to an address. */
  namesOf(address: string): string[] {
    return [...(this.#names.get(address) ?? [])]
  }

  /**
   * Looks up the addresses of a name. The result is empty if there is no such name.
   *
   * @throws Error if the machine's resolver fails
   */
  resolve(name: string): Promise<string[]> {
    const underWay = this.#underWay.get(name)
    if (underWay) return underWay
    const found = this.#resolve(name).finally(() => this.#underWay.delete(name))
    this.#underWay.set(name, found)
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
    if (!isOfAddresses) return await forward(question, stream)
    try {
      const all = await this.resolve(name)
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

  async #resolve(name: string): Promise<string[]> {
    try {
      const found = await lookup(name, { all: true })
      const addresses = found.map(({ address }) => ipaddr.parse(address.replace(/%.*$/, '')).toString())
      for (const address of addresses) this.#remember(ipaddr.process(address).toString(), name)
      return [...new Set(addresses)]
    } catch (error) {
      if (NO_SUCH_NAME.includes(codeOf(error))) return []
      throw error
    }
  }

  #remember(address: string, name: string): void {
    const names = this.#names.get(address) ?? new Set()
    // The newest is the last.
    this.#names.delete(address)
    this.#names.set(address, names.add(name))
    if (this.#names.size <= MOST_ADDRESSES) return
    for (const [oldest] of this.#names) {
      this.#names.delete(oldest)
      break
    }
  }
}

/** Reports whether this machine has an IPv6 address beyond its own links. */
function hasIpv6(): boolean {
  const all = Object.values(networkInterfaces()).flatMap((interfaces) => interfaces ?? [])
  return all.some(
    ({ family, internal, address }) =>
      family === 'IPv6' && !internal && ['public', 'uniqueLocal'].includes(addressKind(address)),
  )
}

/** Passes a query on to the first of the machine's name servers. Returns null if it does not answer in time. */
async function forward({ query }: Question, stream: boolean): Promise<Uint8Array | null> {
  const [server] = getServers()
  const [, bracketed, plain, digits] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(server ?? '') ?? []
  const hostname = bracketed ?? plain ?? server
  if (hostname === undefined || !isAddress(hostname)) return null
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
