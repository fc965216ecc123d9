import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { loadFindConnectedSocket } from '../../src/system/connected-socket.ts'
import type { ConnectedEnd } from '../../src/system/system.ts'

const find = loadFindConnectedSocket()
const ownSockets = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return []
    }
  })

/** Connects to a listener on an address of this machine. */
async function connection(address: string) {
  let accepted: () => void = () => {}
  const isAccepted = new Promise<void>((resolve) => {
    accepted = resolve
  })
  const listener = Bun.listen({ hostname: address, port: 0, socket: { data() {}, open: () => accepted() } })
  const client = await Bun.connect({ hostname: address, port: listener.port, socket: { data() {} } })
  await isAccepted
  const end: ConnectedEnd = { address, port: client.localPort, peerAddress: address, peerPort: listener.port }
  return { end, client, listener }
}

// A kernel, or a container, without sock_diag(7) answers nothing, and berth reads /proc/net/tcp.
const probe = await connection('127.0.0.1')
const shown = find(probe.end) !== null
probe.client.end()
probe.listener.stop(true)
if (!shown) console.error('SKIP the look-up of connected sockets: the kernel has no sock_diag(7) here')

describe.skipIf(!shown).each(['127.0.0.1', '::1'])('a connection to %s', (address) => {
  let { end, client, listener } = {} as Awaited<ReturnType<typeof connection>>
  beforeAll(async () => {
    ;({ end, client, listener } = await connection(address))
  })
  afterAll(() => {
    client.end()
    listener.stop(true)
  })

  test('each end is found by its own addresses, and belongs to this process', () => {
    const other = {
      address,
      port: end.peerPort,
      peerAddress: address,
      peerPort: end.port,
    }
    const found = [find(end), find(other)]
    expect(found.map((one) => one?.uid)).toEqual([process.getuid?.(), process.getuid?.()])
    expect(new Set(found.map((one) => one?.inode)).size).toBe(2)
    for (const one of found) expect(ownSockets()).toContain(`socket:[${one?.inode}]`)
  })

  test('each end has a cookie of its own, which stays', () => {
    const other = { address, port: end.peerPort, peerAddress: address, peerPort: end.port }
    const cookies = [find(end), find(other), find(end)].map((one) => one?.cookie)
    expect(cookies[0]).toBeGreaterThan(0n)
    expect([new Set(cookies).size, cookies[2]]).toEqual([2, cookies[0]])
  })

  test('neither a listener nor a connection that looks alike is an end of it', () => {
    const elsewhere = address === '::1' ? '::2' : '127.0.0.2'
    expect(find({ ...end, port: end.peerPort, peerPort: end.port + 1 })).toBeNull()
    expect(find({ ...end, address: elsewhere })).toBeNull()
    expect(find({ ...end, peerAddress: elsewhere })).toBeNull()
    expect(find({ ...end, port: end.port + 1 })).toBeNull()
  })

  test('one that has ended is not found', async () => {
    const ending = await connection(address)
    ending.client.terminate()
    ending.listener.stop(true)
    expect(find(ending.end)).toBeNull()
  })
})
