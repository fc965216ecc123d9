import { expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'

/* Output that is not UTF-8: text says that bytes were replaced, and the exact bytes are beside it. */

const berth = await berthForTests()
const server = await berth.server()

const run = async (command: string) => (await berth.call('POST', `/servers/${server}/exec`, { command })).body

test.each([
  ['bytes that no character has', "printf 'a\\377\\376b'", [0x61, 0xff, 0xfe, 0x62], 'a\ufffd\ufffdb'],
  ['Latin-1', "printf '\\374\\n'", [0xfc, 0x0a], '\ufffd\n'],
  ['half a character at the end', "printf 'x\\303'", [0x78, 0xc3], 'x\ufffd'],
  ['an overlong form', "printf '\\300\\257'", [0xc0, 0xaf], '\ufffd\ufffd'],
  ['a surrogate', "printf '\\355\\240\\200'", [0xed, 0xa0, 0x80], '\ufffd\ufffd\ufffd'],
])('%s is replaced in the text, and exact in base64', async (_name, command, bytes, text) => {
  const base64 = Buffer.from(bytes).toString('base64')
  expect(await run(command)).toMatchObject({ stdout: text, stdoutBase64: base64, stderr: '', exitCode: 0 })
  const other = await run(`{ ${command}; } >&2`)
  expect(other).toMatchObject({ stdout: '', stderr: text, stderrBase64: base64 })
  expect(other).not.toHaveProperty('stdoutBase64')
})

test.each([
  ['text', 'printf "\\303\\274 \\360\\237\\246\\200"', 'ü 🦀'],
  ['U+FFFD itself', 'printf "\\357\\277\\275"', '\ufffd'],
  ['a byte order mark and NUL', 'printf "\\357\\273\\277\\000"', '\ufeff\0'],
])('%s is text alone', async (_name, command, stdout) => {
  const result = await run(command)
  expect(result.stdout).toBe(stdout)
  expect(result).not.toHaveProperty('stdoutBase64')
  expect(result).not.toHaveProperty('stderrBase64')
})

test('the limit of 10 MiB cuts no character in two', async () => {
  // Characters of three bytes, of which one is cut by the limit.
  const result = await run('yes "€€€€" | tr -d "\\n" | head -c 12000000')
  expect(result.truncated).toBe(true)
  expect(result).not.toHaveProperty('stdoutBase64')
  expect(result.stdout).toBe('€'.repeat(Math.floor((10 * 1024 * 1024) / 3)))
})
