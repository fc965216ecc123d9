import { ptr } from 'bun:ffi'
import ipaddr from 'ipaddr.js'
import { openLibc } from '../../../../system/libc.ts'

const SOL_IP = 0
const SOL_IPV6 = 41
/** The same number on both levels: SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of netfilter. */
const SO_ORIGINAL_DST = 80

/** Bytes of `struct sockaddr_in` and `struct sockaddr_in6`. */
const IPV4_BYTES = 16
const IPV6_BYTES = 28

/** Returns where a connection was going before it was redirected; null if it was not redirected. */
export type OriginalDestination = (fd: number) => { address: string; port: number } | null

/** Loads the C library. Throws if there is none. */
export function loadOriginalDestination(): OriginalDestination {
  const { getsockopt } = openLibc({
    getsockopt: { args: ['int', 'int', 'int', 'ptr', 'ptr'], returns: 'int' },
  })
  const read = (fd: number, level: number, size: number): DataView | null => {
    const bytes = new Uint8Array(size)
    const length = new Uint32Array([size])
    return getsockopt(fd, level, SO_ORIGINAL_DST, ptr(bytes), ptr(length)) === 0
      ? new DataView(bytes.buffer)
      : null
  }
  return (fd) => {
    const view = read(fd, SOL_IP, IPV4_BYTES) ?? read(fd, SOL_IPV6, IPV6_BYTES)
    if (view === null) return null
    const [start, end] = view.byteLength === IPV4_BYTES ? [4, 8] : [8, 24]
    const parts = Array.from(new Uint8Array(view.buffer, start, end - start))
    const address = ipaddr.process(ipaddr.fromByteArray(parts).toString()).toString()
    return { address, port: view.getUint16(2) }
  }
}
