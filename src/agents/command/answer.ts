/** Bytes of a line that a terminal takes: it cuts longer ones, and the key that ends them. */
const LONGEST_ANSWER = 4_000

/** The key that ends a line. */
const ENTER = '\r'

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g

/** An answer as it is typed. */
export interface TypedAnswer {
  readonly bytes: Uint8Array
  /** Whether its end is left out. */
  readonly cut: boolean
}

/**
 * What is typed for an answer: one line, and Enter. Breaks of lines become spaces, since the first would end the
 * answer; other control characters, which could be Ctrl-C or the keys of a menu, are left out.
 */
export function typedAnswer(answer: string): TypedAnswer {
  const line = answer
    .trim()
    .replace(/[\r\n\t\u2028\u2029]+/g, ' ')
    .replace(CONTROL, '')
  const bytes = new TextEncoder().encode(line)
  if (bytes.length <= LONGEST_ANSWER) return { bytes: new TextEncoder().encode(line + ENTER), cut: false }
  // A character that is cut in two is left out whole.
  const kept = new TextDecoder().decode(bytes.subarray(0, LONGEST_ANSWER), { stream: true })
  return { bytes: new TextEncoder().encode(kept + ENTER), cut: true }
}
