/** The private modes that outlive a program that is left, and change what a terminal shows or sends (xterm, DECSET). */
const MODES: ReadonlySet<string> = new Set([
  '1', // cursor keys
  '7', // wraps at the end of a line
  '9', // the mouse, in its ways
  '25', // the cursor is shown
  '47',
  '1000',
  '1002',
  '1003',
  '1004', // focus
  '1005',
  '1006',
  '1015',
  '1047',
  '1049', // the alternate screen
  '2004', // bracketed paste
])

/** Modes that are set where no program has changed anything. */
const USUALLY_SET: ReadonlySet<string> = new Set(['7', '25'])

/** Matches a change of private modes, with its parameters and its direction. */
const CHANGE = new RegExp(`${'\x1b'}\\[\\?([\\d;]{1,64})([hl])`, 'g')

/** Bytes at the end of output that may begin a change. */
const LONGEST_CHANGE = 70

const ESCAPE = Buffer.from('\x1b[?')

/** Watches what a terminal is sent, to undo what is in effect where a program is left that goes on. */
export class ModeWatcher {
  readonly #changed = new Set<string>()
  #rest = ''

  /** Notes the changes in the next bytes of output. */
  watch(bytes: Buffer): void {
    if (
      this.#rest === '' &&
      !bytes.includes(ESCAPE) &&
      !bytes.subarray(-ESCAPE.length).includes(ESCAPE[0] ?? 0)
    )
      return
    const text = this.#rest + bytes.toString('latin1')
    for (const [, parameters = '', direction] of text.matchAll(CHANGE)) {
      for (const mode of parameters.split(';')) {
        if (!MODES.has(mode)) continue
        if ((direction === 'h') === USUALLY_SET.has(mode)) this.#changed.delete(mode)
        else this.#changed.add(mode)
      }
    }
    const tail = text.slice(-LONGEST_CHANGE)
    const begun = tail.lastIndexOf('\x1b')
    this.#rest = begun >= 0 && !/[hl]/.test(tail.slice(begun)) ? tail.slice(begun) : ''
  }

  /** Returns what takes the changes back, colours included. */
  undo(): string {
    const undone = [...this.#changed].map((mode) => `\x1b[?${mode}${USUALLY_SET.has(mode) ? 'h' : 'l'}`)
    return undone.length === 0 ? '\x1b[0m' : `\x1b[0m\x1b>${undone.join('')}`
  }
}
