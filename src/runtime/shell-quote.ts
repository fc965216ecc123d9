/** Joins words to a line of shell code that the shell splits into the same words. */
export const shellQuote = (words: readonly string[]): string => words.map(quoteWord).join(' ')

function quoteWord(word: string): string {
  if (/^[\w@%+:,./-]+$/.test(word)) return word
  return `'${word.replaceAll("'", "'\\''")}'`
}
