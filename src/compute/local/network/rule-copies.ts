import type { SocketCalls } from './socket-calls.ts'

/** The numbers of netlink(7) and of linux/netfilter/nf_tables.h. */
const NLMSG_ERROR = 2
const NLMSG_DONE = 3
const BATCH_BEGIN = 0x10
const BATCH_END = 0x11
const REQUEST = 1
const ACKNOWLEDGE = 4
const DUMP = 0x300
const CREATE = 0x400
const APPEND = 0x800
const NFNL_SUBSYS_NFTABLES = 10
const NFPROTO_INET = 1
/** The bits of an attribute's type that name it. */
const ATTRIBUTE_TYPE = 0x3fff

/** Bytes of `struct nlmsghdr`, and of that with `struct nfgenmsg` after it. */
const HEADER_BYTES = 16
const HEAD_BYTES = 20

/** Longest message that the kernel sends for a dump. */
const RECEIVED_BYTES = 32_768

/** A kind of what a ruleset consists of. */
interface Kind {
  /** Number of the request that makes one. The next number is the request that lists them. */
  readonly make: number
  /** Attributes that say what it is. The others are numbers of the kernel's own, such as handles and counts. */
  readonly attributes: readonly number[]
}

const TABLE: Kind = { make: 0, attributes: [1, 2, 6] }
const CHAIN: Kind = { make: 3, attributes: [1, 3, 4, 5, 7, 12] }
const RULE: Kind = { make: 6, attributes: [1, 2, 4, 7] }

/** The rules of a network, as a batch of messages that makes the same in another. Sets are left out, so no rule may use one. */
export type RuleCopy = Uint8Array

/**
 * Reads the rules of a network. Returns null if the kernel refuses that.
 *
 * @param socket see `RULES_SOCKET`
 */
export function readNetworkRules(calls: SocketCalls, socket: number): RuleCopy | null {
  try {
    const parts = [TABLE, CHAIN, RULE].flatMap((kind) => dump(calls, socket, kind))
    const messages = parts.map(({ kind, attributes }, index) => {
      const acknowledge = index === parts.length - 1 ? ACKNOWLEDGE : 0
      const flags = REQUEST | CREATE | (kind === RULE ? APPEND : 0) | acknowledge
      const bytes = [...attributes].map(([type, value]) => attribute(type, value))
      return message((NFNL_SUBSYS_NFTABLES << 8) | kind.make, flags, NFPROTO_INET, 0, bytes)
    })
    return Buffer.concat([
      message(BATCH_BEGIN, REQUEST, 0, NFNL_SUBSYS_NFTABLES),
      ...messages,
      message(BATCH_END, REQUEST, 0, NFNL_SUBSYS_NFTABLES),
    ])
  } catch {
    return null
  }
}

/**
 * Gives a network that has no rules those of another: all, or none if the kernel refuses any. This takes less than a
 * millisecond and no process.
 *
 * @param socket see `RULES_SOCKET`
 * @returns whether the network has them
 */
export function writeRules(calls: SocketCalls, socket: number, rules: RuleCopy): boolean {
  if (!calls.sendToKernel(socket, rules)) return false
  const buffer = Buffer.alloc(RECEIVED_BYTES)
  let accepted = false
  for (let length = calls.receive(socket, buffer); length > 0; length = calls.receive(socket, buffer)) {
    for (const { type, body } of messagesOf(buffer.subarray(0, length))) {
      if (type !== NLMSG_ERROR || body.readInt32LE(0) !== 0) return false
      accepted = true
    }
  }
  return accepted
}

/** A table, chain or rule. */
interface Part {
  readonly kind: Kind
  /** Values by the numbers of their attributes. */
  readonly attributes: Map<number, Uint8Array>
}

/** Lists all of a kind. Throws an `Error` if the kernel refuses that. */
function dump(calls: SocketCalls, socket: number, kind: Kind): Part[] {
  const type = (NFNL_SUBSYS_NFTABLES << 8) | (kind.make + 1)
  if (!calls.sendToKernel(socket, message(type, REQUEST | DUMP, NFPROTO_INET, 0))) {
    throw new Error('The kernel takes no request.')
  }
  const parts: Part[] = []
  const buffer = Buffer.alloc(RECEIVED_BYTES)
  for (;;) {
    const length = calls.receive(socket, buffer)
    if (length <= 0) throw new Error('The list of the kernel is not whole.')
    for (const { type, body } of messagesOf(Buffer.from(buffer.subarray(0, length)))) {
      if (type === NLMSG_ERROR) throw new Error('The kernel refuses the request.')
      if (type === NLMSG_DONE) return parts
      const all = attributesOf(body.subarray(HEAD_BYTES - HEADER_BYTES))
      parts.push({ kind, attributes: new Map(all.filter(([type]) => kind.attributes.includes(type))) })
    }
  }
}

function* messagesOf(bytes: Buffer): Generator<{ type: number; body: Buffer }> {
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const length = bytes.readUInt32LE(at)
    if (length < HEADER_BYTES) return
    yield { type: bytes.readUInt16LE(at + 4), body: bytes.subarray(at + HEADER_BYTES, at + length) }
    at += aligned(length)
  }
}

function attributesOf(bytes: Buffer): Array<[type: number, value: Uint8Array]> {
  const found: Array<[number, Uint8Array]> = []
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16LE(at)
    if (length < 4) break
    found.push([bytes.readUInt16LE(at + 2) & ATTRIBUTE_TYPE, bytes.subarray(at + 4, at + length)])
    at += aligned(length)
  }
  return found
}

function attribute(type: number, value: ArrayLike<number>): Uint8Array {
  const bytes = Buffer.alloc(aligned(4 + value.length))
  bytes.writeUInt16LE(4 + value.length, 0)
  bytes.writeUInt16LE(type, 2)
  bytes.set(value, 4)
  return bytes
}

function message(
  type: number,
  flags: number,
  family: number,
  resource: number,
  attributes: readonly Uint8Array[] = [],
): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(HEAD_BYTES + attributes.reduce((sum, { length }) => sum + length, 0), 0)
  head.writeUInt16LE(type, 4)
  head.writeUInt16LE(flags, 6)
  head.writeUInt8(family, HEADER_BYTES)
  head.writeUInt16BE(resource, HEADER_BYTES + 2)
  return Buffer.concat([head, ...attributes])
}

/** Netlink aligns messages and attributes to four bytes. */
const aligned = (length: number): number => (length + 3) & ~3
