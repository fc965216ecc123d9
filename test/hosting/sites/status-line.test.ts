import { expect, test } from 'bun:test'
import { BadResponse, parseResponse } from '../../../src/hosting/sites/http1/head.ts'

/** Parses a response's head. Returns its defect, or what was read of it. */
function parse(statusLine: string, fields = ''): string | { status: number; length: number } {
  try {
    const { status, length } = parseResponse(`${statusLine}\r\n${fields}`, 'GET')
    return { status, length }
  } catch (error) {
    expect(error).toBeInstanceOf(BadResponse)
    return (error as Error).message
  }
}

test.each([
  ['HTTP/1.1 200 OK', 200],
  ['HTTP/1.0 404 Not Found', 404],
  ['HTTP/1.1 200', 200],
  ['HTTP/1.1 200 ', 200],
  ['HTTP/1.1 999 \tr\xe9ason', 999],
  ['HTTP/1.1 100 Continue', 100],
])('a status line %p is read', (line, status) => {
  expect(parse(line)).toEqual({ status, length: 0 })
})

test.each([
  'HTTP/1.2 200 OK',
  'HTTP/2.0 200 OK',
  'HTTP/1.1  200 OK',
  'http/1.1 200 OK',
  'HTTP/1.1 099 OK',
  'HTTP/1.1 20 OK',
  'HTTP/1.1 2000 OK',
  'HTTP/1.1 2x0 OK',
  'HTTP/1.1 200\tOK',
  'HTTP/1.1 200 O\rK',
  'HTTP/1.1 200 O\0K',
  'HTTP/1.1 200 O\x7fK',
  'HTTP/1.1 ',
  'HTTP/1.',
  '',
])('a status line %p is refused', (line) => {
  expect(parse(line)).toBe('its status line is malformed')
})

test.each(['', '+1', '-1', '1 2', '1,1', '0x1', '1e3', '1.0', '1234567890123456', 'abc', '\xb2'])(
  'a Content-Length of %p is refused',
  (value) => {
    expect(parse('HTTP/1.1 200 OK', `Content-Length: ${value}\r\n`)).toBe('its Content-Length is no number')
  },
)

test.each([
  ['0', 0],
  ['00012', 12],
  ['123456789012345', 123_456_789_012_345],
])('a Content-Length of %p is read', (value, length) => {
  expect(parse('HTTP/1.1 200 OK', `Content-Length: ${value}\r\n`)).toEqual({ status: 200, length })
})
