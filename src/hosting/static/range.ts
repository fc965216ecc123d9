/** Bytes from `start` up to but without `end`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Reads a Range field (RFC 9110, 14.1.2). Several ranges, other units and what is malformed are passed over: the
 * whole is answered then, as the RFC allows.
 *
 * @param size bytes of the whole
 * @returns the range; `unsatisfiable` where it lies behind the end; null for the whole
 */
export function parseRange(field: string | null, size: number): ByteRange | 'unsatisfiable' | null {
  const [, first, last] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(field ?? '') ?? []
  if (first === undefined || last === undefined || first + last === '') return null
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return null
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) }
}
