/** Words as one line of shell text that the shell splits back into exactly these words. */
export const shellQuote = (words: readonly string[]): string => words.map(quoteWord).join(' ')

function quoteWord(word: string): string {
  if (/^[\w@%+:,./-]+$/.test(word)) return word
  return `'${word.replaceAll("'", "'\\''")}'`
}
