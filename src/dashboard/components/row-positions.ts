/** Identifies a row of a list, at whatever position it is. */
export type RowKey = string | number

/**
 * Where the rows of a list are. All have one height, but those that were measured and found to differ. Nothing is kept
 * of the others, so a list of 100,000 costs as much as its differing rows.
 */
export class RowPositions {
  /** Height of a row that was not measured, in pixels. */
  readonly height: number
  /** By how many pixels measured rows are higher. */
  #extras = new Map<RowKey, number>()
  /** The rows in `#extras`, ascending, and the sums of what they and those before them are higher. */
  #rows: number[] = []
  #sums: number[] = []
  #count = 0
  #first: RowKey | null = null
  #last: RowKey | null = null

  constructor(height: number) {
    this.height = height
  }

  /** Height of the list in pixels. */
  get total(): number {
    return this.start(this.#count)
  }

  /** Takes the rows as they are now. */
  update(count: number, keyAt: (index: number) => RowKey): void {
    const isSame = this.#first === (count === 0 ? null : keyAt(0))
    const isLonger = isSame && count >= this.#count && this.#count > 0
    const isGrown = isLonger && keyAt(this.#count - 1) === this.#last
    this.#count = count
    this.#first = count === 0 ? null : keyAt(0)
    this.#last = count === 0 ? null : keyAt(count - 1)
    // Rows that were added at the end move no other.
    if (!isGrown && this.#extras.size > 0) this.#find(keyAt)
  }

  /** Returns the first pixel of a row; of the row after the last, the height of the list. */
  start(index: number): number {
    return index * this.height + (this.#sums[this.#differingBefore(index) - 1] ?? 0)
  }

  /** Returns the row at a pixel: the first or last one if none is there. */
  at(pixel: number): number {
    let [low, high] = [0, this.#count - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.start(middle) <= pixel) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Takes the measured height of a row. Returns by how many pixels the rows after it move. */
  measure(index: number, key: RowKey, height: number): number {
    const extra = height - this.height
    const moved = extra - (this.#extras.get(key) ?? 0)
    if (moved === 0) return 0
    const at = this.#differingBefore(index)
    if (this.#rows[at] !== index) {
      this.#rows.splice(at, 0, index)
      this.#sums.splice(at, 0, this.#sums[at - 1] ?? 0)
    }
    this.#extras.set(key, extra)
    for (let row = at; row < this.#sums.length; row += 1) this.#sums[row] = (this.#sums[row] ?? 0) + moved
    return moved
  }

  /** Returns the number of differing rows before one. */
  #differingBefore(index: number): number {
    let [low, high] = [0, this.#rows.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#rows[middle] ?? 0) < index) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Finds the differing rows where they are now, and forgets those that are gone. */
  #find(keyAt: (index: number) => RowKey): void {
    const extras = new Map<RowKey, number>()
    this.#rows = []
    this.#sums = []
    let sum = 0
    for (let index = 0; index < this.#count && extras.size < this.#extras.size; index += 1) {
      const key = keyAt(index)
      const extra = this.#extras.get(key)
      if (extra === undefined) continue
      extras.set(key, extra)
      sum += extra
      this.#rows.push(index)
      this.#sums.push(sum)
    }
    this.#extras = extras
  }
}
