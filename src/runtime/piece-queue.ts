/** Pieces up to this size are joined with the one before, up to the other size. */
const SMALL_BYTES = 4 * 1024
const JOINED_BYTES = 64 * 1024

/** Room that a joined piece has at first, bytes. */
const FIRST_ROOM = 256

/** Pieces from which on those of a kind are joined even if others came between them. @bound system */
const MOST_APART = 1_000

/** A piece: the first `length` of its bytes. There is room behind them if it was joined. */
interface Piece<Kind> {
  readonly kind: Kind
  bytes: Uint8Array
  length: number
}

/**
 * Bytes that arrive in pieces and wait for their reader. Small pieces are joined, since each by itself takes hundreds of
 * bytes of memory, and who sends them may send single bytes. Their order is kept; among pieces of different kinds it is
 * only while there are not very many.
 */
export class PieceQueue<Kind = null> {
  readonly #pieces: Piece<Kind>[] = []

  /** Whether there is none. */
  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /** Adds a piece, which must not change. */
  push(kind: Kind, bytes: Uint8Array): void {
    const last = this.#lastOf(kind)
    const isJoined =
      last !== undefined && bytes.length <= SMALL_BYTES && last.length + bytes.length <= JOINED_BYTES
    if (isJoined) join(last, bytes)
    else this.#pieces.push({ kind, bytes, length: bytes.length })
  }

  /** Takes the first piece; undefined if there is none. */
  shift(): { readonly kind: Kind; readonly bytes: Uint8Array } | undefined {
    const first = this.#pieces.shift()
    return first && { kind: first.kind, bytes: first.bytes.subarray(0, first.length) }
  }

  /** Takes all bytes, of whatever kind. */
  takeAll(): Uint8Array {
    const all = this.#pieces.splice(0).map(({ bytes, length }) => bytes.subarray(0, length))
    const [only] = all
    return all.length === 1 && only !== undefined ? only : Buffer.concat(all)
  }

  #lastOf(kind: Kind): Piece<Kind> | undefined {
    const last = this.#pieces.at(-1)
    if (last?.kind === kind) return last
    return this.#pieces.length < MOST_APART
      ? undefined
      : this.#pieces.findLast((piece) => piece.kind === kind)
  }
}

function join(piece: { bytes: Uint8Array; length: number }, bytes: Uint8Array): void {
  const length = piece.length + bytes.length
  // The first bytes of a joined piece are another's to keep.
  if (length > piece.bytes.length) {
    const roomy = new Uint8Array(Math.max(FIRST_ROOM, 2 * length))
    roomy.set(piece.bytes.subarray(0, piece.length))
    piece.bytes = roomy
  }
  piece.bytes.set(bytes, piece.length)
  piece.length = length
}
