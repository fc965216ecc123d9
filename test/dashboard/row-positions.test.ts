import { expect, test } from 'bun:test'
import { RowPositions } from '../../src/dashboard/components/row-positions.ts'
import { thorough } from '../support/thorough.ts'

/** What a list knows that keeps the height of each row. */
class PlainPositions {
  keys: number[] = []
  readonly heights = new Map<number, number>()

  start(index: number): number {
    return this.keys.slice(0, index).reduce((sum, key) => sum + (this.heights.get(key) ?? 20), 0)
  }

  at(pixel: number): number {
    let index = 0
    while (index < this.keys.length - 1 && this.start(index + 1) <= pixel) index += 1
    return index
  }
}

test('rows are placed by the heights of those before them, whatever is added, removed and measured', () => {
  const pick = (most: number): number => Math.floor(Math.random() * most)
  for (let run = 0; run < (thorough ? 200 : 20); run += 1) {
    const plain = new PlainPositions()
    const positions = new RowPositions(20)
    let next = 0
    for (let step = 0; step < 60; step += 1) {
      const kind = pick(4)
      if (kind === 0) plain.keys = [...plain.keys, ...Array.from({ length: pick(9) }, () => next++)]
      if (kind === 1) plain.keys = plain.keys.slice(pick(5))
      if (kind === 2) plain.keys = plain.keys.filter(() => pick(8) > 0)
      if (kind < 3) positions.update(plain.keys.length, (index) => plain.keys[index] ?? -1)
      else if (plain.keys.length > 0) {
        const index = pick(plain.keys.length)
        const height = 20 * (1 + pick(3))
        const key = plain.keys[index] ?? -1
        positions.measure(index, key, height)
        plain.heights.set(key, height)
      }
      // A row that is gone was measured for nothing: it does not come back.
      for (const key of plain.heights.keys()) if (!plain.keys.includes(key)) plain.heights.delete(key)
      expect(positions.total).toBe(plain.start(plain.keys.length))
      const index = pick(plain.keys.length + 1)
      expect(positions.start(index)).toBe(plain.start(index))
      const pixel = pick(positions.total + 20)
      if (plain.keys.length > 0) expect(positions.at(pixel)).toBe(plain.at(pixel))
    }
  }
})
