/**
 * Deepest nesting of arrays and objects in a JSON text (RFC 8259, 9). Parsers and validators descend level by level, so
 * a small text could otherwise keep the service busy for seconds and take hundreds of megabytes.
 */
export const MAX_JSON_DEPTH = 64

/**
 * Returns the offset of the first bracket beyond `MAX_JSON_DEPTH`, or null if there is none. Brackets in strings do not
 * count. The text need not be valid.
 */
export function findTooDeep(text: string): number | null {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at)
    } else if (character === '{' || character === '[') {
      depth += 1
      if (depth > MAX_JSON_DEPTH) return at
    } else if (character === '}' || character === ']') {
      depth -= 1
    }
  }
  return null
}

/** Returns the end of the string that begins at a quote: the next quote that is not escaped. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
