import { ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { openLibc } from '../libc.ts'

const SOL_SOCKET = 1
const SCM_RIGHTS = 1
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
const MSG_CMSG_CLOEXEC = 0x4000_0000
const SOCK_CLOEXEC = 0o2000000
const SOCK_NONBLOCK = 0o4000

/** Sizes of `struct msghdr` and of the `struct cmsghdr` before the descriptors, on 64-bit systems. */
const HEADER_BYTES = 56
const CONTROL_HEADER_BYTES = 16

/** Hands open descriptors to another process, over a unix socket of their own; see unix(7), SCM_RIGHTS. */
export interface DescriptorCalls {
  /** Sends copies; the descriptors stay the caller's to close. @throws Error if the other side takes none */
  send(socket: number, descriptors: readonly number[]): void
  /**
   * Makes sockets that do not block, in the network of this process, and sends them; leaves out those of kinds that the
   * kernel does not have.
   *
   * @throws Error if the other side takes none
   */
  sendNew(socket: number, kinds: readonly { domain: number; type: number; protocol: number }[]): void
  /**
   * Receives descriptors that were sent together, without waiting for them. The sender need not be trusted: those
   * beyond the permitted number are never opened. They are the caller's to close.
   *
   * @throws Error if none have come
   */
  receive(socket: number, max: number): number[]
}

/** Loads the C library. Throws if there is none. */
export function loadDescriptorCalls(): DescriptorCalls {
  const calls = openLibc({
    sendmsg: { args: ['int', 'ptr', 'int'], returns: 'i64' },
    recvmsg: { args: ['int', 'ptr', 'int'], returns: 'i64' },
  })
  const send = (socket: number, descriptors: readonly number[]): void => {
    const message = new Message(descriptors)
    if (Number(calls.sendmsg(socket, ptr(message.header), MSG_DONTWAIT | MSG_NOSIGNAL)) !== 1) {
      throw new Error('The descriptors were not taken.')
    }
  }
  return {
    send,
    sendNew(to, kinds) {
      const { socket } = openLibc({ socket: { args: ['int', 'int', 'int'], returns: 'int' } })
      const made = kinds
        .map(({ domain, type, protocol }) => socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol))
        .filter((descriptor) => descriptor >= 0)
      try {
        send(to, made)
      } finally {
        for (const descriptor of made) closeSync(descriptor)
      }
    },
    receive(socket, max) {
      const message = new Message(new Array(max).fill(-1))
      const received = Number(calls.recvmsg(socket, ptr(message.header), MSG_DONTWAIT | MSG_CMSG_CLOEXEC))
      const descriptors = received === 1 ? message.descriptors : []
      if (descriptors.length === 0) throw new Error('No descriptors have come.')
      return descriptors
    },
  }
}

/** One byte with descriptors attached: a `struct msghdr` and all that it points to. */
class Message {
  readonly header = new BigUint64Array(HEADER_BYTES / 8)
  readonly #byte = new Uint8Array(1)
  readonly #vector: BigUint64Array
  readonly #control: DataView

  constructor(descriptors: readonly number[]) {
    const length = CONTROL_HEADER_BYTES + 4 * descriptors.length
    const control = new BigUint64Array(Math.ceil(length / 8))
    this.#vector = new BigUint64Array([BigInt(ptr(this.#byte)), 1n])
    this.#control = new DataView(control.buffer)
    this.#control.setBigUint64(0, BigInt(length), true)
    this.#control.setInt32(8, SOL_SOCKET, true)
    this.#control.setInt32(12, SCM_RIGHTS, true)
    for (const [index, descriptor] of descriptors.entries()) {
      this.#control.setInt32(CONTROL_HEADER_BYTES + 4 * index, descriptor, true)
    }
    this.header.set([0n, 0n, BigInt(ptr(this.#vector)), 1n, BigInt(ptr(control)), BigInt(length), 0n])
  }

  /** The descriptors that the system has written into it; it may have used only a part of the room. */
  get descriptors(): number[] {
    const used = Number(this.header[5] ?? 0n)
    const isRights =
      used >= CONTROL_HEADER_BYTES &&
      this.#control.getInt32(8, true) === SOL_SOCKET &&
      this.#control.getInt32(12, true) === SCM_RIGHTS
    if (!isRights) return []
    const length = Math.min(used, Number(this.#control.getBigUint64(0, true))) - CONTROL_HEADER_BYTES
    return Array.from({ length: Math.floor(length / 4) }, (_, index) =>
      this.#control.getInt32(CONTROL_HEADER_BYTES + 4 * index, true),
    )
  }
}
