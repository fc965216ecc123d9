import { expect, test } from 'bun:test'
import { PlainTextStream, toPlainText } from '../../src/cli/plain-text.ts'
import type { TranscriptItem } from '../../src/cli/tasks/transcript.ts'
import { TranscriptView } from '../../src/cli/tasks/view.ts'

let seq = 0
const kept = (event: object): TranscriptItem =>
  ({ seq: ++seq, at: '2030-01-01T00:00:00.000Z', ...event }) as TranscriptItem
const call = (name: string, tool: string, input: object) =>
  kept({ type: 'toolCall', call: name, tool, input })
const result = (name: string, tool: string, output: object, ok = true) =>
  kept({ type: 'toolResult', call: name, tool, ok, output })
const output = (name: string, offset: number, text: string, stream = 'stdout') =>
  ({ type: 'output', call: name, stream, text, offset }) as TranscriptItem
const text = (offset: number, piece: string): TranscriptItem => ({ type: 'text', text: piece, offset })
const message = (whole: string) => kept({ type: 'message', text: whole })
const ran = (stdout: string, rest: object = {}) => ({
  stdout,
  stderr: '',
  exitCode: 0,
  timedOut: false,
  truncated: false,
  ...rest,
})

/** What a person sees of it. */
async function shown(...items: TranscriptItem[]): Promise<string> {
  let all = ''
  const sink = {
    write: async (data: string | Uint8Array) => {
      all += data
    },
    isTTY: false,
    hasColors: false,
  }
  const view = new TranscriptView(sink)
  for (const item of items) await view.show(item)
  await view.end()
  return all
}

const RUN = call('call_1', 'run', { command: 'x' })
const HEAD = '▸ $ x\n'

test('output that came in pieces is not shown again, and missing pieces are', async () => {
  const whole = result('call_1', 'run', ran('one\ntwo\n'))
  const expected = `${HEAD}  │ one\n  │ two\n`
  expect(await shown(RUN, whole)).toBe(expected)
  expect(await shown(RUN, output('call_1', 0, 'one\nt'), output('call_1', 5, 'wo\n'), whole)).toBe(expected)
  expect(await shown(RUN, output('call_1', 0, 'one\nt'), whole)).toBe(expected)
  expect(await shown(RUN, output('call_1', 0, 'one\nt'), output('call_1', 2, 'e\nt'), whole)).toBe(expected)
  // A follower that joins late may not know the call itself.
  expect(await shown(output('call_1', 0, 'one\n'), whole)).toBe('  │ one\n  │ two\n')
})

test('says so and goes on when the beginning is missing', async () => {
  const whole = result('call_1', 'run', ran('one\ntwo\n'))
  expect(await shown(RUN, output('call_1', 4, 'two\n'), whole)).toBe(
    `${HEAD}  │ … 4 characters that came before are not shown\n  │ two\n`,
  )
})

test('of output that was shortened the pieces are what is shown, or else its end', async () => {
  const printed = Array.from({ length: 9 }, (_, n) => `${'x'.repeat(997)} ${n}\n`)
  const kept = `${printed.slice(0, 2).join('')}\n… (5000 characters are left out here)\n${printed.slice(7).join('')}`
  const whole = result('call_1', 'run', ran(kept, { truncated: true }))
  const pieces = printed.map((line, n) => output('call_1', n * 1_000, line))
  const lines = printed.map((line) => `  │ ${line}`)
  expect(await shown(RUN, ...pieces, whole)).toBe(HEAD + lines.join(''))
  expect(await shown(RUN, whole)).toBe(HEAD + kept.replace(/^/gm, '  │ ').replace(/ {2}│ $/, ''))
  const note = '  │ … not all of it is shown; its end:\n'
  expect(await shown(RUN, ...pieces.slice(0, 4), whole)).toBe(
    [HEAD, ...lines.slice(0, 4), note, ...lines.slice(7)].join(''),
  )
})

test('commands side by side do not write into lines of each other', async () => {
  const all = await shown(
    call('call_1', 'run', { command: 'a' }),
    call('call_2', 'run', { command: 'b', cwd: 'src' }),
    output('call_1', 0, 'half of '),
    output('call_2', 0, 'another\n'),
    output('call_1', 8, 'a line\n'),
    output('call_1', 0, 'no newline', 'stderr'),
    result('call_1', 'run', ran('half of a line\n', { stderr: 'no newline' })),
    result('call_2', 'run', ran('another\n', { exitCode: 2 }), false),
  )
  expect(all).toBe(
    '▸ $ a\n▸ $ b  (in src)\n  │ half of \n  │ another\n  │ a line\n  │ no newline\n  ✗ exit code 2\n',
  )
})

test('a message that came in pieces is shown once', async () => {
  const expected = 'It is done.\nAll of it.\n'
  expect(await shown(message('It is done.\nAll of it.'))).toBe(expected)
  expect(await shown(text(0, 'It is '), text(6, 'done.\nAll'), message('It is done.\nAll of it.'))).toBe(
    expected,
  )
  expect(await shown(text(0, '\n\nIt is done.\nAll of it.\n'), message('It is done.\nAll of it.'))).toBe(
    `\n\n${expected}`,
  )
  expect(await shown(text(0, 'I was wro'), message('It is done.'), message('Next'))).toBe(
    'I was wro\nIt is done.\nNext\n',
  )
})

test('tools show in a line what they do and what came of it', async () => {
  const all = await shown(
    call('call_1', 'write', { path: 'a\u001b[2J\nb.ts', content: 'x' }),
    result('call_1', 'write', { bytes: 2_500 }),
    call('call_2', 'read', { path: 'no.ts' }),
    result('call_2', 'read', { error: 'There is no file "no.ts".' }, false),
    call('call_3', 'list', { path: '' }),
    result('call_3', 'list', { files: 1, truncated: false }),
    call('call_4', 'search', { pattern: 'to+', path: 'src' }),
    call('call_5', 'other', { n: 1 }),
    result('call_4', 'search', { matches: 2, truncated: false }),
    result('call_5', 'other', { m: 2 }),
    call('call_6', 'run', { command: 'a\nb' }),
    result('call_6', 'run', ran('', { exitCode: 137, timedOut: true }), false),
  )
  expect(all).toBe(
    [
      '▸ write a�b.ts  2.5 KB',
      '▸ read no.ts  ✗ There is no file "no.ts".',
      '▸ list .  1 file',
      '▸ search to+ in src',
      '▸ other {"n":1}',
      '▸ search to+ in src  2 matches',
      '▸ other {"n":1}  {"m":2}',
      '▸ $ a',
      '    b',
      '  ✗ ran out of time and was ended',
      '',
    ].join('\n'),
  )
})

test('terminal lines, notices, and what a model has used show at their place', async () => {
  const all = await shown(
    kept({ type: 'terminal', text: '\u001b[32mbuilding\u001b[0m\r' }),
    kept({ type: 'usage', inputTokens: 5, outputTokens: 1 }),
    kept({ type: 'notice', text: 'asked again' }),
    kept({ type: 'usage', inputTokens: 12_345, outputTokens: 678, cost: 0.0456 }),
    kept({ type: 'status', status: 'failed', result: 'first\nsecond' }),
  )
  expect(all).toBe(
    '  │ building\n· asked again\n12,345 tokens read, 678 written, $0.0456\n✗ failed: first\n  second\n',
  )
})

test.each([
  ['\u001b[1;31mred\u001b[0m', 'red'],
  ['a\u001b]8;;http://x\u0007link\u001b]8;;\u001b\\b', 'alinkb'],
  ['a\u001bPq\u001b\\b\u001b(Bc\u001b7', 'abc'],
  ['10%\r20%\r\nend\r\r\n', '10%\n20%\nend\n'],
  ['a\tb', 'a    b'],
  // One without an end hides nothing of what follows.
  ['a\u001b]0;title\nb', 'a�]0;title\nb'],
  ['a\u009b31mb\u0000\u202e', 'a�31mb��'],
])('%j is shown as %j, however it is cut', (raw, expected) => {
  expect(toPlainText(raw)).toBe(expected)
  for (let at = 0; at <= raw.length; at += 1) {
    const text = new PlainTextStream()
    expect(text.push(raw.slice(0, at)) + text.push(raw.slice(at)) + text.end()).toBe(expected)
  }
  const single = new PlainTextStream()
  expect([...raw].map((character) => single.push(character)).join('') + single.end()).toBe(expected)
})

test('a sequence that never ends holds back no more than 4,096 characters', () => {
  const text = new PlainTextStream()
  const pushed = text.push(`\u001b]${'x'.repeat(5_000)}`)
  expect(pushed.length).toBe(5_002)
  expect(text.push('y')).toBe('y')
})
