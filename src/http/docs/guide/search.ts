import { type GuidePage, type GuidePart, guidePages, partsOf, plain } from './pages.ts'

/** A part of a page that a search has found. */
export interface GuideMatch {
  readonly page: GuidePage
  /** The part's heading as plain text. Equals the page's title for its beginning. */
  readonly heading: string
  /** The heading's fragment in the page's URL; empty for the beginning. */
  readonly fragment: string
  /** The paragraph of the part that has the most of the words, as plain text. */
  readonly excerpt: string
}

/** Words of questions that tell nothing about what is sought. */
const SMALL_WORDS: ReadonlySet<string> = new Set(
  'a about am an and are as at be by can could did do does for from has have how i if in into is it its me my not of on or our see should so that the then there this to was were what when where which who why will with would you your'.split(
    ' ',
  ),
)

/** What a word counts where it stands. */
const WEIGHT = {
  /** The title, at the page's beginning; the title counts less for the page's other parts. */
  title: 8,
  titleOfPart: 2,
  heading: 6,
  /** The one paragraph that has the most of the words: words that stand together belong together. */
  paragraph: 3,
  /** Each time in the text, up to three times. */
  text: 1,
}

/**
 * Returns the parts of pages that have the most of the words, best first: in the title, in the heading, in one paragraph,
 * then anywhere in the text. Case, the endings of words and small words of a question do not matter.
 */
export async function searchGuide(words: readonly string[]): Promise<GuideMatch[]> {
  const typed = words.flatMap((word) => word.toLowerCase().split(/[\s?!,.;:"]+/)).filter(Boolean)
  const telling = typed.filter((word) => !SMALL_WORDS.has(word))
  const wanted = [...new Set(telling.length > 0 ? telling : typed)].map(wordForms)
  const found = (await guidePages()).flatMap((page) =>
    partsOf(page).flatMap((part) => rated(page, part, wanted) ?? []),
  )
  const most = Math.max(0, ...found.map(({ has }) => has))
  return found
    .filter(({ has }) => has === most)
    .sort((a, b) => b.score - a.score)
    .map(({ match }) => match)
}

/** Rates a part of a page; null if it has none of the words. */
function rated(
  page: GuidePage,
  { heading, fragment, lines }: GuidePart,
  wanted: readonly WordForms[],
): { match: GuideMatch; has: number; score: number } | null {
  const body = lines.join('\n')
  const text = `${page.title}\n${heading}\n${body}`
  const has = countIn(text, wanted)
  if (has === 0) return null
  // A row of a table and an entry of a list stand for themselves.
  const paragraphs = body.split(/\n(?=\||- |\s*\n)/).map((paragraph) => ({
    paragraph,
    count: countIn(paragraph, wanted),
  }))
  const best = paragraphs.reduce((one, other) => (other.count > one.count ? other : one))
  const score =
    countIn(page.title, wanted) * (fragment === '' ? WEIGHT.title : WEIGHT.titleOfPart) +
    (fragment === '' ? 0 : countIn(heading, wanted) * WEIGHT.heading) +
    best.count * WEIGHT.paragraph +
    wanted.reduce((sum, word) => sum + Math.min(3, word.countIn(text)) * WEIGHT.text, 0)
  return { match: { page, heading, fragment, excerpt: excerptOf(best.paragraph) }, has, score }
}

/** Returns how many of the words a text has. */
const countIn = (text: string, wanted: readonly WordForms[]): number =>
  wanted.filter((word) => word.isIn(text)).length

/** Longest excerpt, in characters. */
const EXCERPT = 240

function excerptOf(paragraph: string): string {
  const cells = paragraph.replaceAll(/^\s*(?:\||-)|\|\s*$/g, '').replaceAll(/(?<!\\)\|/g, '·')
  const text = plain(cells.replaceAll('\\|', '|').replaceAll(/\s+/g, ' ').trim())
  return text.length <= EXCERPT ? text : `${text.slice(0, text.lastIndexOf(' ', EXCERPT))} …`
}

/** A word in all its forms: `delete` stands for deleted, deletes and deleting too. */
interface WordForms {
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
