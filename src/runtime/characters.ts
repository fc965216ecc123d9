/** Returns the first `most` UTF-16 units of a text, one fewer if they would end within a character. */
export const firstCharacters = (text: string, most: number): string =>
  text.slice(0, isWithinCharacter(text, most) ? most - 1 : most)

/** Returns the last `most` UTF-16 units of a text, one fewer if they would begin within a character. */
export function lastCharacters(text: string, most: number): string {
  const from = Math.max(text.length - most, 0)
  return text.slice(isWithinCharacter(text, from) ? from + 1 : from)
}

/** Reports whether a position is between the halves of a surrogate pair. */
const isWithinCharacter = (text: string, at: number): boolean =>
  at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff
