/** A word in all its forms: `delete` stands for deleted, deletes and deleting too. */
export interface WordForms {
  /** Reports whether a text has the word. */
  isIn(text: string): boolean
  /** Returns how often a text has the word. */
  countIn(text: string): number
}

/** Endings that make other forms of a word of at least three more letters. */
const ENDING = /(?<=[a-z]{3})(?:ments?|ings?|ions?|ied|ies|ers?|ed|es|e|s|y)$/

/** The same endings, at the end of a form. */
const ENDINGS = '(?:ments?|ings?|ions?|ied|ies|ers?|ed|es|e|s|y)?'

/** Letters of a word that also finds longer words, such as `idempot`. */
const LONG = 5

/** Returns a word in all its forms. Case does not matter. */
export function wordForms(word: string): WordForms {
  const stem = stemOf(word)
  const last = stem.at(-1) ?? ''
  // A consonant is doubled before an ending: stop, stopped.
  const forms = `${RegExp.escape(stem)}${/[a-z]/.test(last) ? `${last}?` : ''}${ENDINGS}(?![\\p{L}\\p{N}])`
  const pattern = new RegExp(
    `(?<![\\p{L}\\p{N}])(?:${forms}${word.length < LONG ? '' : `|${RegExp.escape(word)}`})`,
    'giu',
  )
  return {
    isIn: (text) => text.search(pattern) >= 0,
    countIn: (text) => text.match(pattern)?.length ?? 0,
  }
}

/** Returns what all forms of a word begin with. */
function stemOf(word: string): string {
  const bare = word.replace(/^[^\p{L}\p{N}]+/u, '')
  if (bare === '') return word
  const stem = bare.replace(ENDING, '')
  return stem === bare ? bare : stem.replace(/([bdgmnprt])\1$/, '$1')
}
