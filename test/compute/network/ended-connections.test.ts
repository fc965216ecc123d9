import { expect, test } from 'bun:test'
import { openSync } from 'node:fs'
import { EndedConnections } from '../../../src/compute/local/network/ended-connections.ts'
import { loadSocketCalls } from '../../../src/compute/local/network/socket-calls.ts'

test('programs that end connections faster than berth reads of it hold up nobody, and nothing is known then', async () => {
  let received = 0
  let isFlooded = true
  const socket = openSync('/dev/null', 'r')
  const ends = new EndedConnections(
    {
      ...loadSocketCalls(),
      setMembership: () => 0,
      receive() {
        received += 1
        return isFlooded && received < 1_000_000 ? 88 : -1
      },
    },
    socket,
  )
  const connection = { host: '127.0.0.1', port: 80, localPort: 40_000 } as const
  expect(ends.watch(connection)).toBe(null)
  expect(received).toBeLessThan(10_000)
  isFlooded = false
  const watched = ends.watch(connection)
  isFlooded = true
  received = 0
  const read = watched?.bytesRead()
  // It looks again later, not at once.
  expect(received).toBeLessThan(10_000)
  ends.close()
  expect(await read).toBe(null)
})
