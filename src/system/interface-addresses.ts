import { type Pointer, ptr, read } from 'bun:ffi'
import ipaddr from 'ipaddr.js'
import { once } from '../runtime/once.ts'
import { openLibc } from './libc.ts'

/** Offsets in `struct ifaddrs` (getifaddrs(3)), the same on Linux and macOS. */
const NEXT = 0
const ADDRESS = 24

/** Offset of the family in `struct sockaddr`; macOS has the structure's length before it. */
const FAMILY = process.platform === 'darwin' ? 1 : 0

/** Where addresses are in their structures, by family: `AF_INET` and `AF_INET6`. */
const PLACES: Readonly<Record<number, { readonly offset: number; readonly length: number }>> = {
  2: { offset: 4, length: 4 },
  [process.platform === 'darwin' ? 30 : 10]: { offset: 8, length: 16 },
}

/** Milliseconds for which the addresses are kept. */
const KEPT_MS = 100

/** Returns the addresses of all interfaces of this machine in their usual notation, IPv6 ones without a zone. */
export type InterfaceAddresses = () => readonly string[]

/**
 * Returns a function that reads the addresses of this machine, and loads the C library at its first call.
 * `os.networkInterfaces` leaves out interfaces that are down or have no carrier, such as a bridge without containers and a
 * cable that is pulled out, but the kernel goes on taking connections to their addresses.
 *
 * Reading them takes up to a third of a millisecond, so they are kept for a moment: a server can ask to connect to very many
 * addresses.
 *
 * The function throws an `Error` if the kernel does not tell them.
 */
export function interfaceAddressesReader(): InterfaceAddresses {
  const calls = once(() =>
    openLibc({
      getifaddrs: { args: ['ptr'], returns: 'int' },
      freeifaddrs: { args: ['ptr'], returns: 'void' },
    }),
  )
  let addresses: readonly string[] = []
  let end = 0
  return () => {
    const now = performance.now()
    if (now >= end) {
      addresses = readAddresses(calls())
      end = now + KEPT_MS
    }
    return addresses
  }
}

/** The calls of getifaddrs(3). */
interface AddressCalls {
  getifaddrs(head: Pointer): number
  freeifaddrs(first: Pointer): void
}

function readAddresses({ getifaddrs, freeifaddrs }: AddressCalls): string[] {
  const head = new BigUint64Array(1)
  if (getifaddrs(ptr(head)) !== 0) throw new Error('The addresses of this machine cannot be read.')
  const first = Number(head[0])
  const found: string[] = []
  for (let at = first; at !== 0; at = read.ptr(at as Pointer, NEXT)) {
    const address = read.ptr(at as Pointer, ADDRESS)
    const place = address === 0 ? undefined : PLACES[read.u8(address as Pointer, FAMILY)]
    if (place === undefined) continue
    const bytes = Array.from({ length: place.length }, (_, n) =>
      read.u8(address as Pointer, place.offset + n),
    )
    found.push(ipaddr.fromByteArray(bytes).toString())
  }
  freeifaddrs(first as Pointer)
  return found
}
