import { ptr } from 'bun:ffi'
import { expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { NetworkLoader } from '../../../src/compute/local/network/network-setup.ts'
import { loadSocketCalls, socketAddress } from '../../../src/compute/local/network/socket-calls.ts'
import { ComputeError } from '../../../src/compute/sandbox.ts'
import { BLANK_SOCKETS } from '../../../src/compute/sandboxd/protocol.ts'
import { openLibc } from '../../../src/system/libc.ts'
import { loadDescriptorCalls } from '../../../src/system/linux/descriptors.ts'

const libc = openLibc({
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  socketpair: { args: ['int', 'int', 'int', 'ptr'], returns: 'int' },
  listen: { args: ['int', 'int'], returns: 'int' },
  getsockname: { args: ['int', 'ptr', 'ptr'], returns: 'int' },
  setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
  send: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
  fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
})
const AF_UNIX = 1
const SOCK_STREAM = 1
const blank = (count = BLANK_SOCKETS.length): number[] =>
  BLANK_SOCKETS.slice(0, count).map(({ domain, type }) => libc.socket(domain, type, 0))
const files = (): number[] => BLANK_SOCKETS.map(() => openSync('/dev/null', 'r'))
const listening = (): number[] => {
  const sockets = blank()
  libc.listen(sockets[0] ?? -1, 1)
  return sockets
}

// Each of these is of berth's own network too, but for another reason it would be taken for what it is not.
test.each<[string, () => number[], string]>([
  ['nothing', () => [], 'No descriptors'],
  ['files', files, 'something else'],
  ['too many sockets for IPv4, too few for IPv6', () => blank(5), 'has sent 5'],
  ['sockets that listen', listening, 'something else'],
  ['sockets in another order', () => blank().reverse(), 'something else'],
  ['sockets of berth’s own network', blank, 'own network'],
])('a sandboxd that sends %s starts no server, and leaves nothing open', (_, make, why) => {
  const loader = new NetworkLoader()
  const before = descriptors()
  const pair = new Int32Array(2)
  libc.socketpair(AF_UNIX, SOCK_STREAM, 0, ptr(pair))
  const [ours = -1, theirs = -1] = pair
  const sent = make()
  if (sent.length > 0) loadDescriptorCalls().send(theirs, sent)
  for (const fd of [...sent, theirs]) closeSync(fd)
  let error: unknown = null
  try {
    loader.receive(ours)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(ComputeError)
  expect(String(error)).toContain(why)
  expect(descriptors()).toBe(before)
})

test('a sandboxd that sends more sockets than asked for has the rest dropped by the kernel', () => {
  const loader = new NetworkLoader()
  const before = descriptors()
  const pair = new Int32Array(2)
  libc.socketpair(AF_UNIX, SOCK_STREAM, 0, ptr(pair))
  const [ours = -1, theirs = -1] = pair
  const sent = [...blank(), ...blank(), ...blank()]
  loadDescriptorCalls().send(theirs, sent)
  for (const fd of [...sent, theirs]) closeSync(fd)
  expect(() => loader.receive(ours)).toThrow('own network')
  expect(descriptors()).toBe(before)
})

const SOL_SOCKET = 1
const SO_LINGER = 13
const MSG_DONTWAIT = 0x40
const F_GETFL = 3
const O_NONBLOCK = 0o4000

test('a sandboxd that sends a connection whose close waits for a program that does not read holds up nobody', () => {
  const calls = loadSocketCalls()
  const loader = new NetworkLoader()
  const [listener, connection] = [libc.socket(2, SOCK_STREAM, 0), libc.socket(2, SOCK_STREAM, 0)]
  calls.bind(listener, socketAddress('127.0.0.1', 0))
  libc.listen(listener, 1)
  const address = new Uint8Array(16)
  libc.getsockname(listener, ptr(address), ptr(new Uint32Array([16])))
  expect(calls.connect(connection, address)).toBe(0)
  const piece = new Uint8Array(2 ** 20)
  while (Number(libc.send(connection, ptr(piece), piece.length, MSG_DONTWAIT)) > 0);
  libc.setsockopt(connection, SOL_SOCKET, SO_LINGER, ptr(new Int32Array([1, 30])), 8)
  const pair = calls.pair()
  loadDescriptorCalls().send(pair.theirs, [connection])
  for (const fd of [connection, pair.theirs]) closeSync(fd)
  const began = performance.now()
  expect(() => loader.receive(pair.ours)).toThrow('has sent 1')
  expect(performance.now() - began).toBeLessThan(10_000)
  closeSync(listener)
})

test('no call waits for a socket that a sandboxd has sent as one that blocks', () => {
  const calls = loadSocketCalls()
  const socket = libc.socket(2, SOCK_STREAM, 0)
  expect(libc.fcntl(socket, F_GETFL, 0) & O_NONBLOCK).toBe(0)
  calls.neverWait(socket)
  expect(libc.fcntl(socket, F_GETFL, 0) & O_NONBLOCK).toBe(O_NONBLOCK)
  closeSync(socket)
})

const descriptors = (): number => readdirSync('/proc/self/fd').length
