import { afterEach, describe, expect, test } from 'bun:test'
import { TerminalLines } from '../../src/agents/command/lines.ts'
import { Emulators } from '../../src/compute/emulators/emulators.ts'
import { quietLogger } from '../support/logger.ts'

const emulators = new Emulators(quietLogger)
const opened: TerminalLines[] = []
afterEach(() => {
  for (const lines of opened.splice(0)) lines.close()
})

/** Returns the lines that a terminal of 20 columns and 5 rows reports if no screen stands still before the end. */
async function linesOf(...pieces: string[]): Promise<string[]> {
  const { lines, told } = terminal()
  for (const piece of pieces) await lines.write(Buffer.from(piece))
  await lines.end()
  return told
}

function terminal(): { lines: TerminalLines; told: string[] } {
  const told: string[] = []
  const onLine = ({ text }: { text: string }): boolean => {
    told.push(text)
    return false
  }
  const lines = new TerminalLines({ emulators, size: { columns: 20, rows: 5 }, onLine })
  opened.push(lines)
  return { lines, told }
}

/** Waits until no timer of the screen has anything to tell any more; while this process stands still, nothing counts. */
async function standStill(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Bun.sleep(10)
}

const ESC = '\x1b'
const CSI = `${ESC}[`

describe('the lines of a terminal', () => {
  test('are those that were printed, in order, whatever leaves the screen', async () => {
    const printed = Array.from({ length: 100 }, (_, n) => `line ${n}`)
    expect(await linesOf(printed.map((line) => `${line}\r\n`).join(''))).toEqual(printed)
  })

  test('of several paragraphs stay apart, by one empty line', async () => {
    const text = Array.from({ length: 10 }, (_, n) => `a ${n}\r\nb ${n}\r\n\r\n\r\n`).join('')
    const expected = Array.from({ length: 10 }, (_, n) => [...(n > 0 ? [''] : []), `a ${n}`, `b ${n}`]).flat()
    expect(await linesOf(text)).toEqual(expected)
    expect(await linesOf('one\r\n\r\ntwo\r\n')).toEqual(['one', '', 'two'])
  })

  test('are whole where they are longer than the screen is wide, or than it is high', async () => {
    const long = 'x'.repeat(333)
    expect(await linesOf(`${long}\r\nnext\r\n`)).toEqual([long, 'next'])
    expect(await linesOf(`one\r\n${'y'.repeat(20)}\r\nthree`)).toEqual(['one', 'y'.repeat(20), 'three'])
    const [longest = ''] = await linesOf('z'.repeat(1_000_000))
    expect(longest).toEndWith(' … (the rest of the line is left out)')
    expect(longest.length).toBeLessThan(17_000)
  })

  test('hold no control character and no sequence, however these are cut into pieces', async () => {
    const text = [
      `${CSI}1;31mred${CSI}0m`,
      `${ESC}]0;title\x07plain`,
      `${ESC}]8;;https://example.com${ESC}\\link${ESC}]8;;${ESC}\\`,
      `${ESC}P1$r0m${ESC}\\after`,
      `be${CSI}?25l${CSI}6n${CSI}cfore\x07\x00\x0e`,
      `${ESC}(0q${ESC}(B\u009b31mC1\u009d0;x\u009cend`,
      'fin',
    ].join('\r\n')
    const expected = ['red', 'plain', 'link', 'after', 'before', 'qC1end', 'fin']
    expect(await linesOf(text)).toEqual(expected)
    expect(await linesOf(...text)).toEqual(expected)
  })

  test('show what was drawn over other things as it was left', async () => {
    expect(await linesOf('10 %\r55 %\r100 %\r\ndone\r\n')).toEqual(['100 %', 'done'])
    expect(await linesOf(`abcdef\b\b\bXY\r\n${CSI}2Cin\r\n`)).toEqual(['abcXYf', '  in'])
    expect(await linesOf(`a\r\nb\r\nc\r\n${CSI}3A${CSI}J1\r\n2\r\n`)).toEqual(['1', '2'])
    expect(await linesOf(`${CSI}2J${CSI}3;3Hmid${CSI}1;1Htop${CSI}3;6H!`)).toEqual(['top', '', '  mid!'])
    expect(await linesOf(`abcdef\r${CSI}2P${CSI}3C${CSI}@-\r\n`)).toEqual(['cde-f'])
    expect(await linesOf(`a\tb\r\n1\r\n2${CSI}1A${CSI}L${CSI}Gnew`)).toEqual(['a       b', 'new', '1', '2'])
  })

  test('of characters that take two columns stay whole', async () => {
    const chinese = '你好，世界，这是一个很长的句子。'
    expect(await linesOf(`${chinese}\r\n😀 ok\r\n`)).toEqual([chinese, '😀 ok'])
    expect(await linesOf(`你好吗${CSI}5G!\r\n`)).toEqual(['你好!'])
    const bytes = new TextEncoder().encode('é你\r\n')
    const { lines, told } = terminal()
    for (const byte of bytes) await lines.write(new Uint8Array([byte]))
    await lines.end()
    expect(told).toEqual(['é你'])
  })

  test('above a status line that a scroll region keeps at the bottom are reported', async () => {
    const lines = Array.from({ length: 20 }, (_, n) => `step ${n}`)
    const drawn = lines.map((line) => `${line}\r\n${ESC}7${CSI}5;1H[${line}]${ESC}8`).join('')
    const told = await linesOf(`${CSI}1;4r${CSI}1;1H${drawn}`)
    expect(told.filter((line) => line.startsWith('step'))).toEqual(lines)
    expect(told.filter((line) => line.startsWith('['))).toEqual(['[step 19]'])
  })

  test('that a program moves out at the top are reported, also by a command for many at once', async () => {
    expect(await linesOf(`a\r\nb\r\nc${CSI}2Sd`)).toEqual(['a', 'b', 'c', '', ' d'])
    expect(await linesOf(`a\r\nb\r\nc${CSI}1;1H${CSI}Md`)).toEqual(['a', 'd', 'c'])
    expect(await linesOf(`a\r\nb\r\nc${CSI}2;4r${CSI}2Sd`)).not.toContain('')
  })

  test('keep the space between two words where a row ends, and the columns of what is wide', async () => {
    const text = 'nineteen characters and the next words'
    expect(await linesOf(`${text}\r\n`)).toEqual([text])
    expect(await linesOf(`😀x${CSI}4Gy\r\n`)).toEqual(['😀xy'])
  })

  test('of a full-screen program go with its screen', async () => {
    const drawn = Array.from({ length: 50 }, (_, n) => `${CSI}2J${CSI}Hframe ${n}`).join('')
    expect(await linesOf(`before\r\n${CSI}?1049h${drawn}${CSI}?1049l`, 'after\r\n')).toEqual([
      'before',
      'after',
    ])
  })

  test.each(['@', 'A', 'b', 'I', 'L', 'M', 'P', 'S', 'T', 'X', 'Z'])(
    'are there in no time after a command for two thousand million steps: %s',
    async (final) => {
      const begun = performance.now()
      expect((await linesOf(`${CSI}2147483647${final}`.repeat(20), '\r\nend')).at(-1)).toBe('end')
      expect(performance.now() - begun).toBeLessThan(2_000)
    },
  )

  test('nonsense changes nothing: parameters without end, strings that nobody ends', async () => {
    expect(await linesOf(`${CSI}${'9'.repeat(5000)}A${CSI}99999999Bx`)).toEqual(['x'])
    expect(
      (await linesOf(`${CSI}0;0;0r${CSI}-5H${CSI}3$yA${CSI}99999Lgone${CSI}99999X\r\n`)).join(),
    ).toContain('gone')
    expect(await linesOf(`a${ESC}]52;c;never ended`)).toEqual(['a'])
    expect((await linesOf(`a${ESC}]${'x'.repeat(5 * 2 ** 20)}b\r\n`))[0]).toStartWith('ax')
  })
})

describe('a row that does not change', () => {
  test('is reported once while the program goes on, also as a line without an end', async () => {
    const { lines, told } = terminal()
    await lines.write(new TextEncoder().encode('first\r\nName? '))
    await standStill()
    expect(told).toEqual(['first', 'Name?'])
    await lines.write(new TextEncoder().encode('bob\r\nlast\r\n'))
    await standStill()
    expect(told).toEqual(['first', 'Name?', 'last'])
    await lines.end()
    expect(told).toEqual(['first', 'Name?', 'last', 'Name? bob'])
  })

  test('is not reported again when it is redrawn, or moves down to make room', async () => {
    const { lines, told } = terminal()
    const write = (text: string) => lines.write(new TextEncoder().encode(text))
    const box = '---\r\n> input\r\n---\r\n'
    await write(box)
    await standStill()
    for (const message of ['hello', 'world']) {
      await write(`${CSI}3A${CSI}J${message}\r\n${box}`)
      await standStill()
    }
    await write(`${CSI}3A${CSI}J${box}`)
    await standStill()
    await lines.end()
    expect(told).toEqual(['---', '> input', '---', 'hello', 'world'])
  })

  test('of a spinner is a line now and then, not each frame', async () => {
    const { lines, told } = terminal()
    const write = (text: string) => lines.write(new TextEncoder().encode(text))
    await write('working\r\n')
    for (let n = 0; n < 60; n += 1) {
      await write(`\r${'|/-\\'.charAt(n % 4)} ${n}`)
      await Bun.sleep(20)
    }
    await write('\r\x1b[Kdone\r\n')
    await lines.end()
    expect(told).toEqual(['working', 'done'])
  })
})
