/**
 * Most characters of a text, and most keys, tables, lists and dots in it, counted by their signs, in strings too.
 * @bound peer
 */
const MAX_LENGTH = 2 ** 20
const MAX_KEYS = 5_000
const MAX_DOTS = 50_000

/** A text is not parsed because parsing could keep the service busy for seconds. */
export class TomlSizeError extends Error {
  override readonly name = 'TomlSizeError'
}

/**
 * Parses a TOML text (https://toml.io). The time of Bun's parser grows with the square of the number of keys, and each
 * dot of a key takes memory, so large texts are refused. A text within the limits takes less than 0.1 s.
 *
 * @throws TomlSizeError if it is too large
 * @throws Error if it is not valid
 */
export function parseToml(text: string): Record<string, unknown> {
  if (text.length > MAX_LENGTH || has(text, /[=[{]/g, MAX_KEYS) || has(text, /\./g, MAX_DOTS)) {
    throw new TomlSizeError(`it has more than ${MAX_KEYS} keys, tables and lists, or is larger than 1 MiB`)
  }
  return Bun.TOML.parse(text) as Record<string, unknown>
}

/** Reports whether a text has more than `most` matches of a pattern. */
function has(text: string, pattern: RegExp, most: number): boolean {
  let count = 0
  for (const _ of text.matchAll(pattern)) {
    count += 1
    if (count > most) return true
  }
  return false
}
