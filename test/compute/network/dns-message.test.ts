import { expect, test } from 'bun:test'
import { readQuestion } from '../../../src/compute/local/network/outbound/dns-message.ts'

/** Returns a query for the IPv4 addresses of a name. */
const queryOf = (...labels: string[]): Uint8Array => {
  const name = labels.flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')])
  return new Uint8Array([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...name, 0, 0, 1, 0, 1])
}

test('a name has no character that a terminal, a log or the end of a label would mean', () => {
  expect(readQuestion(queryOf('WWW', '_tcp', 'example-1', 'com'))?.name).toBe('www._tcp.example-1.com')
  expect(readQuestion(queryOf('a\x1b]0;b\x07\x9b\n', 'com'))?.name).toBe('a\\027]0\\059b\\007\\155\\010.com')
  expect(readQuestion(queryOf('other.example', 'com'))?.name).toBe('other\\046example.com')
})

test('a name has as many bytes as the protocol permits, and no more', () => {
  const label = 'a'.repeat(63)
  expect(readQuestion(queryOf(label, label, label, 'a'.repeat(61)))?.name).toHaveLength(253)
  expect(readQuestion(queryOf(label, label, label, 'a'.repeat(62)))).toBeNull()
  expect(readQuestion(queryOf(...Array.from({ length: 127 }, () => 'a')))?.name).toHaveLength(253)
  expect(readQuestion(queryOf(...Array.from({ length: 128 }, () => 'a')))).toBeNull()
})
