import { ptr } from 'bun:ffi'
import ipaddr from 'ipaddr.js'
import { OWN_IPV4, OWN_IPV6, type SocketCalls } from './socket-calls.ts'

/** Requests of netdevice(7) and rtnetlink's older way; the structures are those of 64-bit systems. */
const SIOCADDRT = 0x890b
const SIOCSIFADDR = 0x8916
const SIOCSIFNETMASK = 0x891c
const RTF_UP = 1
const AF_INET = 2
/** The loopback interface is the first of every network. */
const LOOPBACK_INDEX = 1

/**
 * Gives a network the address `OWN_IPV4` and a default route, both on its loopback interface: what goes there is
 * redirected, or refused at once. The kernel asks whether the caller may do this, not who made the socket, and the
 * user who has started a sandbox may do everything in its network.
 *
 * @param fd a socket of the network, of IPv4
 * @returns the number of the first error, 0 for none
 */
export function assignIPv4(calls: SocketCalls, fd: number): number {
  const request = new Uint8Array(40)
  request.set(Buffer.from('lo:1'))
  const set = (bytes: number[]): Uint8Array => {
    new DataView(request.buffer).setUint16(16, AF_INET, true)
    request.set(bytes, 20)
    return request
  }
  const name = Buffer.from('lo\0')
  const route = new Uint8Array(120)
  const view = new DataView(route.buffer)
  for (const at of [8, 24, 40]) view.setUint16(at, AF_INET, true)
  view.setUint16(56, RTF_UP, true)
  view.setBigUint64(88, BigInt(ptr(name)), true)
  return (
    calls.control(fd, SIOCSIFADDR, set(OWN_IPV4.split('.').map(Number))) ||
    calls.control(fd, SIOCSIFNETMASK, set([255, 255, 255, 255])) ||
    calls.control(fd, SIOCADDRT, route)
  )
}

/**
 * Does what the function above does, with `OWN_IPV6`.
 *
 * @param fd a socket of the network, of IPv6
 */
export function assignIPv6(calls: SocketCalls, fd: number): number {
  const request = new Uint8Array(24)
  request.set(ipaddr.parse(OWN_IPV6).toByteArray())
  const address = new DataView(request.buffer)
  address.setUint32(16, 128, true)
  address.setInt32(20, LOOPBACK_INDEX, true)
  const route = new Uint8Array(80)
  const view = new DataView(route.buffer)
  view.setUint32(56, 1, true)
  view.setUint32(72, RTF_UP, true)
  view.setInt32(76, LOOPBACK_INDEX, true)
  return calls.control(fd, SIOCSIFADDR, request) || calls.control(fd, SIOCADDRT, route)
}
