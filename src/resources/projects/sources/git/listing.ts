import { quoted, SourceError } from '../errors.ts'
import type { SourceLimits } from '../limits.ts'
import { tooLarge, tooMany } from '../tree.ts'

const SUBMODULE = '160000'
/** A line is a path and some numbers; a longer one belongs to no tree that could be written. */
const MAX_RECORD = 16 * 1024

/**
 * Reads the output of `git ls-tree -r -t -l -z` for a commit before it is written. Counts entries and bytes, so a
 * repository over the limits is given up early.
 */
export class TreeListing {
  readonly #limits: SourceLimits
  #remainder = ''
  #entries = 0
  #bytes = 0
  /** Paths of the submodules, which are not fetched; the first few. */
  readonly submodules: string[] = []

  constructor(limits: SourceLimits) {
    this.#limits = limits
  }

  /** Takes the next part of the listing. @throws SourceError over a limit */
  push(chunk: Uint8Array): void {
    const records = (this.#remainder + Buffer.from(chunk).toString('latin1')).split('\0')
    this.#remainder = records.pop() ?? ''
    if (this.#remainder.length > MAX_RECORD)
      throw new SourceError('The repository holds a path that is too long.')
    for (const record of records) this.#count(record)
  }

  #count(record: string): void {
    const tab = record.indexOf('\t')
    const [mode, , , size] = record.slice(0, tab).split(/ +/)
    this.#entries += 1
    if (this.#entries > this.#limits.entries) throw tooMany(this.#limits)
    if (size !== '-' && size !== undefined) this.#bytes += Number(size)
    if (this.#bytes > this.#limits.bytes) throw tooLarge(this.#limits)
    if (mode === SUBMODULE && this.submodules.length < 10) {
      this.submodules.push(quoted(Buffer.from(record.slice(tab + 1), 'latin1').toString()))
    }
  }
}
