import { describe, expect, test } from 'bun:test'
import { findJsonFault, isTooDeep, parseWithLoss } from '../../src/runtime/validation/json-faults.ts'

/** What is lost of a text, as a sentence; null if nothing is. */
const lossOf = (text: string): string | null => parseWithLoss(text)?.loss?.sentence() ?? null

const WHOLE = 'expected a whole number from -9007199254740991 to 9007199254740991, or a string, got'

describe('fields of the same name are found', () => {
  test.each([
    ['{"a":1,"a":2}', 'a'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"a":{"x":1},"b":{"x":1},"a":3}', 'a'],
    ['{"list":[{"a":1},{"b":1,"c":[],"b":2}]}', 'list[1].b'],
    ['[[],{"deep":{"a":"}","a":"{"}}]', '[1].deep.a'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,"":2}', ''],
    ['{"a\\"":1,"b":"\\\\","a\\"":2}', 'a"'],
  ])('%s', (text, path) => {
    expect(lossOf(text)).toBe(`"${path}" is there twice: name it once.`)
  })

  test.each([
    '{"a":1,"A":2}',
    '[{"a":1},{"a":1}]',
    '{"a":{"a":{"a":1}}}',
    '{"a":["b","b"],"b":"a"}',
    '{"__proto__":{"__proto__":1},"constructor":2}',
    '{"text":"{\\"a\\":1,\\"a\\":2}"}',
    '["a","a"]',
  ])('%s has none', (text) => {
    expect(lossOf(text)).toBe(null)
  })
})

describe('numbers that no double keeps are found', () => {
  test.each([
    ['9007199254740992', WHOLE],
    ['-9007199254740993', WHOLE],
    ['12345678901234567890', WHOLE],
    ['9007199254740993.0', WHOLE],
    ['9007199254740993e0', WHOLE],
    ['900719925474099300E-2', WHOLE],
    ['1e400', 'expected a number from'],
    ['-1E+400', 'expected a number from'],
    ['1e-400', 'expected a number from'],
  ])('%s', (number, expected) => {
    expect(lossOf(`{"n":[0,${number}]}`)).toStartWith(`"n[1]": ${expected}`)
    expect(lossOf(`{"n":[0,${number}]}`)).toEndWith(`got ${number}.`)
  })

  test.each([
    '9007199254740991',
    '-9007199254740991',
    '1e20',
    '1.5e300',
    '1e23',
    '0.1234567890123456789',
    '0.00000000000000000000',
    '-0',
    '0e9',
    '5e-324',
  ])('%s is kept', (number) => {
    expect(lossOf(`{"n":${number},"text":"12345678901234567890"}`)).toBe(null)
  })
})

describe('a text', () => {
  test('that is nested too deeply is not parsed, whatever else it has', () => {
    const text = `{"a":1,"a":1e400,"b":${'['.repeat(64)}${']'.repeat(64)}}`
    expect(isTooDeep(text)).toBe(true)
    expect(parseWithLoss(text)).toBe(null)
    expect(findJsonFault(text)?.loss).toBe(null)
    expect(isTooDeep('['.repeat(64))).toBe(false)
  })

  test.each(['{"a":1,"a"', '{"a":1,"a":2', '[1e400', '{"a":12345678901234567890x}', ']]]]{', '"', ',,,'])(
    'that is malformed is a matter of the parser: %s',
    (text) => {
      expect(() => parseWithLoss(text)).toThrow(SyntaxError)
    },
  )

  test('of many fields takes a multiple of the time in which it is parsed', () => {
    const fields = Array.from({ length: 40_000 }, (_, n) => `"k${n}":"${'\\\\'.repeat(20)}"`)
    const text = `{${fields},"k0":1}`
    const best = (read: (text: string) => unknown): number => {
      const times = Array.from({ length: 5 }, () => {
        const start = performance.now()
        read(text)
        return performance.now() - start
      })
      return Math.min(...times)
    }
    expect(findJsonFault(text)).not.toBeNull()
    // Comparing each name with all others would take thousands of times as long.
    expect(best(findJsonFault)).toBeLessThan(best(JSON.parse) * 100)
  })
})
