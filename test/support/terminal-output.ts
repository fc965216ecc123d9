import type { TerminalSize } from '../../src/compute/sandbox.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'

/** What a terminal goes through: output of its program, or another size. */
export type TerminalStep = { readonly output: Uint8Array } | { readonly size: TerminalSize }

/** Sizes at the edges of what a terminal may have. */
const SIZES = ['1x1', '2x1', '1x2', '3x100', '20x5', '20x5', '80x24', '80x24', '132x43', '500x2', '35x1000']
/** The largest, which takes long to draw. */
const LARGEST = '10000x34'

/** Finals of CSI that the emulator knows, those with more state behind them more often. */
const CSI_FINALS = '@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstu}~JJJJHHHHKLMSTr'

/** Private modes that the emulator knows. */
const MODES = [
  1, 3, 5, 6, 7, 9, 12, 25, 45, 47, 66, 1000, 1003, 1004, 1006, 1016, 1047, 1048, 1049, 2004, 2026,
]

/** Lengths of strings. The longest is one of those of which each takes 640 MB if nothing bounds it. */
const LENGTHS = [0, 1, 10, 10, 100, 300, 5_000]
const LONGEST = 9_900_000

/** Makes output by the grammar of control functions, with parameters at the edges, and sizes between it. */
export class TerminalOutput {
  readonly #random: Random
  #size: TerminalSize = { columns: 80, rows: 24 }

  /** @param seed the same one makes the same steps */
  constructor(seed: number) {
    this.#random = seededRandom(seed, 'terminal output')
  }

  /** Returns a size. */
  size(): TerminalSize {
    const size = this.#below(100) === 0 ? LARGEST : this.#pick(SIZES)
    const [columns, rows] = size.split('x').map(Number)
    this.#size = { columns: columns ?? 1, rows: rows ?? 1 }
    return this.#size
  }

  /** Returns the next step. */
  step(): TerminalStep {
    if (this.#below(40) === 0) return { size: this.size() }
    const pieces = Array.from({ length: 1 + this.#below(30) }, () => this.#piece())
    return { output: Buffer.from(pieces.join(''), 'latin1') }
  }

  /** Returns output of a program that begins a string and never ends it. */
  unended(): Uint8Array {
    return Buffer.from(`${this.#stringBegin()}${'A'.repeat(LONGEST)}`, 'latin1')
  }

  #below(limit: number): number {
    return new DataView(this.#random.bytes(4).buffer).getUint32(0) % limit
  }

  #pick<T>(values: ArrayLike<T>): T {
    return values[this.#below(values.length)] as T
  }

  /** Returns bytes, as the characters U+0000 to U+00FF. */
  #piece(): string {
    const kinds = [
      () => this.#csi(),
      () => this.#csi(),
      () => this.#csi(),
      () => `\x1b${this.#pick(['', '', '#', '(', ')', '*', ' ', '%'])}${this.#character(0x30, 0x7f)}`,
      () =>
        `${this.#stringBegin()}${this.#payload()}${this.#pick(['\x07', '\x1b\\', '\x18', '\xc2\x9c', ''])}`,
      () => this.#text(),
      () => this.#text(),
      () => this.#pick(['\r', '\n', '\b', '\t', '\x0b', '\x0e', '\x0f', '\x1a', '\x7f', '\x00', '\r\n']),
      () => `\xc2${this.#character(0x80, 0xa0)}`,
      () => this.#character(0, 0x100),
    ]
    return this.#pick(kinds)()
  }

  #csi(): string {
    if (this.#below(5) === 0) return `\x1b[?${this.#pick(MODES)}${this.#pick('hl')}`
    const count = this.#pick([0, 1, 1, 1, 2, 2, 5, 40])
    const parameters = Array.from({ length: count }, () => this.#parameter()).join(this.#pick(';;;;:'))
    const prefix = this.#pick(['', '', '', '', '', '?', '>', '=', '<'])
    const intermediate = this.#pick(['', '', '', '', '', ' ', '!', '"', '$', "'", '#'])
    const final = this.#below(12) === 0 ? this.#character(0x40, 0x7f) : this.#pick(CSI_FINALS)
    return `${this.#pick(['\x1b[', '\x1b[', '\xc2\x9b'])}${prefix}${parameters}${intermediate}${final}`
  }

  #parameter(): string {
    const { columns, rows } = this.#size
    const edges = [0, 1, 2, 3, rows - 1, rows, rows + 1, columns - 1, columns, columns + 1]
    const large = [999, 9_999, 65_536, 2_147_483_647, 4_294_967_296, '', '-1', '9'.repeat(30)]
    return String(this.#pick([...edges, ...edges, ...large]))
  }

  #stringBegin(): string {
    const begins = [
      () => `\x1b]${this.#pick([0, 1, 2, 4, 8, 10, 11, 12, 52, 104, 110, 133, 1337, 99999, ''])};`,
      () => `\x1bP${this.#pick(['', '1', '0;1', '$', '+', '1$', '>'])}${this.#pick('qprt|')}`,
      () => this.#pick(['\x1b_', '\x1b^', '\x1bX', '\xc2\x9d0;', '\xc2\x90q', '\xc2\x9f', '\xc2\x98']),
    ]
    return this.#pick(begins)()
  }

  #payload(): string {
    return this.#pick(['A', '?;', 'm', '\xc3\xa9', '"q', 'rgb:ff/0/0;', '\n', '!99q']).repeat(
      this.#pick(LENGTHS),
    )
  }

  #text(): string {
    const texts = [
      'x',
      'word ',
      '\u4f60',
      '\u{1f600}',
      '\u{1f468}\u200d\u{1f469}',
      'e\u0301',
      '\u0e2a\u0e27',
      '\ufe0f',
    ]
    const text = Buffer.from(this.#pick(texts)).toString('latin1')
    const marks = Buffer.from('\u0301')
      .toString('latin1')
      .repeat(this.#pick([0, 0, 0, 1, 40]))
    return `${text}${marks}`.repeat(this.#pick([1, 1, 3, this.#size.columns + 1]))
  }

  #character(from: number, end: number): string {
    return String.fromCharCode(from + this.#below(end - from))
  }
}
