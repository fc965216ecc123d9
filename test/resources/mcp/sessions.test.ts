import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { McpSessions } from '../../../src/resources/mcp/sessions.ts'

test('sessions that are ended take little room, however long their names are', () => {
  const sessions = new McpSessions()
  const asker = (n: number) => ({ credentialId: 'key_1', session: `${n}${'x'.repeat(10_000)}` })
  const size = (): number => {
    Bun.gc(true)
    const { heapSize, extraMemorySize } = heapStats()
    return heapSize + extraMemorySize
  }
  const before = size()
  for (let n = 0; n < 12_000; n++) sessions.end(asker(n))
  expect(size() - before).toBeLessThan(20_000_000)
  expect(sessions.isEnded(asker(11_999))).toBe(true)
  expect(sessions.isEnded(asker(5_000))).toBe(true)
  expect(sessions.isEnded(asker(12_000))).toBe(false)
})

test('requests that share an id are all called off, by their id and with their session', () => {
  const sessions = new McpSessions()
  const asker = { credentialId: 'key_1', session: 'one' }
  const ended: string[] = []
  const begin = (name: string) => sessions.begin(asker, 1, () => ended.push(name))
  using _first = begin('first')
  {
    using _second = begin('second')
    sessions.cancel(asker, 1)
    expect(ended).toEqual(['first', 'second'])
  }
  sessions.end(asker)
  expect(ended).toEqual(['first', 'second', 'first'])
})
