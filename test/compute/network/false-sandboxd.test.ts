import { ptr } from 'bun:ffi'
import { expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { ComputeError } from '../../../src/compute/compute-error.ts'
import { NetworkLoader } from '../../../src/compute/local/network/network-setup.ts'
import { loadDescriptorCalls } from '../../../src/compute/sandboxd/descriptors.ts'
import { openLibc } from '../../../src/compute/sandboxd/libc.ts'
import { BLANK_SOCKETS } from '../../../src/compute/sandboxd/protocol.ts'

const libc = openLibc({
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  socketpair: { args: ['int', 'int', 'int', 'ptr'], returns: 'int' },
  listen: { args: ['int', 'int'], returns: 'int' },
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

const descriptors = (): number => readdirSync('/proc/self/fd').length
