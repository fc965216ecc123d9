import { expect, test } from 'bun:test'
import { PieceQueue } from '../../src/runtime/piece-queue.ts'

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Takes everything from a queue, in its order. */
function textsOf<Kind>(queue: PieceQueue<Kind>): [Kind, string][] {
  const texts: [Kind, string][] = []
  for (let next = queue.shift(); next !== undefined; next = queue.shift())
    texts.push([next.kind, Buffer.from(next.bytes).toString()])
  return texts
}

test('pieces that wait are joined, and keep their order among those of other kinds', () => {
  const queue = new PieceQueue<'out' | 'err'>()
  const first = bytesOf('a')
  for (const [kind, text] of [
    ['out', first],
    ['out', bytesOf('b')],
    ['err', bytesOf('c')],
    ['out', bytesOf('d')],
    ['out', bytesOf('e')],
  ] as const)
    queue.push(kind, text)
  expect(textsOf(queue)).toEqual([
    ['out', 'ab'],
    ['err', 'c'],
    ['out', 'de'],
  ])
  expect(first).toEqual(bytesOf('a'))
  expect(queue.isEmpty).toBe(true)
})

test('nothing is lost of many pieces of alternating kinds, and each kind keeps its order', () => {
  const queue = new PieceQueue<number>()
  const sizes = Array.from({ length: 5_000 }, (_, n) => (n % 100 === 0 ? 10_000 : 1 + (n % 7)))
  const given = ['', '']
  for (const [n, size] of sizes.entries()) {
    const text = String.fromCharCode(97 + (n % 26)).repeat(size)
    given[n % 2] += text
    queue.push(n % 2, bytesOf(text))
  }
  const taken = ['', '']
  for (const [kind, text] of textsOf(queue)) taken[kind] += text
  expect(taken).toEqual(given)
})

test('single bytes take memory in proportion to their number', () => {
  const count = 2 ** 21
  const queue = new PieceQueue()
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  for (let n = 0; n < count; n++) queue.push(null, new Uint8Array([n]))
  Bun.gc(true)
  // By itself each would take about 100 bytes. Other tests of this process may leave garbage to the collector.
  expect(process.memoryUsage.rss() - before).toBeLessThan(128 * 2 ** 20)
  const all = queue.takeAll()
  expect(all.length).toBe(count)
  expect(all.every((byte, n) => byte === n % 256)).toBe(true)
})
