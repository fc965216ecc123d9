import { describe, expect, test } from 'bun:test'
import { toIso } from '../../src/runtime/clock.ts'
import { parseDuration } from '../../src/runtime/duration.ts'
import { createIds } from '../../src/runtime/ids.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { KeyedMutex } from '../../src/runtime/mutex.ts'
import { base62, seededRandom, systemRandom } from '../../src/runtime/random.ts'

describe('durations', () => {
  test.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['30', 30_000],
    ['', null],
    ['-1s', null],
    ['10 parsecs', null],
  ])('%s is %p ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })
})

describe('ids', () => {
  test('ascend within a millisecond, and when the clock goes back', () => {
    let now = 1_000_000
    const ids = createIds({ now: () => now }, () => systemRandom)
    const made = Array.from({ length: 100 }, (_, n) => {
      if (n === 50) now -= 5_000
      return ids.next('srv')
    })
    expect(made).toEqual(made.toSorted())
    expect(new Set(made).size).toBe(100)
  })

  test('repeat from run to run with a seed and a frozen clock', () => {
    const make = () => createIds({ now: () => 5 }, (prefix) => seededRandom(7, prefix)).next('key')
    expect(make()).toBe(make())
  })

  test('of one kind do not change those of another, and taken ones are passed over', () => {
    const make = () => createIds({ now: () => 5 }, (prefix) => seededRandom(7, prefix))
    const [first, second] = [make(), make()]
    for (let n = 0; n < 5; n++) first.next('req')
    const id = first.next('srv')
    expect(second.next('srv')).toBe(id)
    expect(make().next('srv', (taken) => taken === id)).not.toBe(id)
  })
})

describe('random', () => {
  test('seeds repeat, and differ from one another', () => {
    expect(base62(seededRandom(1), 43)).toBe(base62(seededRandom(1), 43))
    expect(base62(seededRandom(1), 43)).not.toBe(base62(seededRandom(2), 43))
  })

  test('base62 uses every character about equally often', () => {
    const counts = new Map<string, number>()
    for (const letter of base62(systemRandom, 62_000)) counts.set(letter, (counts.get(letter) ?? 0) + 1)
    expect(counts.size).toBe(62)
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(250)
  })
})

describe('KeyedMutex', () => {
  test('runs calls of one key in order, of different keys side by side, and goes on after a failure', async () => {
    const mutex = new KeyedMutex()
    const order: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = mutex.run('a', async () => {
      await gate.promise
      order.push('a1')
      throw new Error('a1 failed')
    })
    const second = mutex.run('a', async () => order.push('a2'))
    await mutex.run('b', async () => order.push('b1'))
    gate.resolve()
    await expect(first).rejects.toThrow('a1 failed')
    await second
    expect(order).toEqual(['b1', 'a1', 'a2'])
  })
})

describe('logger', () => {
  test('drops what is below its level and keeps a line a line', () => {
    const lines: string[] = []
    const logger = createLogger(
      'warn',
      (line) => lines.push(line),
      () => 0,
    )
    logger.info('dropped')
    logger.warn('two\nlines?', { value: 'a b\nc', path: '/x' })
    expect(lines.length).toBe(1)
    expect(lines[0]?.trimEnd()).not.toContain('\n')
    expect(lines[0]).toContain('value="a b\\nc" path=/x')
  })
})

test('times are ISO 8601 in UTC with milliseconds', () => {
  expect(toIso(0)).toBe('1970-01-01T00:00:00.000Z')
})
