/** The bytes from `start` to `end`, `end` exclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Parses a Range field (RFC 9110, section 14.1.2). Ignores several ranges, other units and malformed fields: the
 * response is then complete, as the RFC allows.
 *
 * @param size bytes of the whole
 * @returns the range; `unsatisfiable` if it starts after the end; null for the whole
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
