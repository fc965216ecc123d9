import type { ProjectTemplate } from '../../templates/model.ts'
import { KEYWORDS, type Keywords } from './keywords.ts'

/** Characters of a goal in which words are looked for. */
const MOST_READ = 64 * 1024

/** Points that another template needs more than the one that is there. */
const CLEARLY = 3

/** How much the words of a goal speak for a template. */
export interface Score {
  readonly template: ProjectTemplate
  readonly points: number
  /** The words that do, as the goal has them. */
  readonly words: readonly string[]
}

/** A template for a goal, and why. */
export interface Choice {
  readonly template: ProjectTemplate
  /** For a person; a sentence. */
  readonly why: string
  /** What is to be done, in Markdown, where somebody has planned it. */
  readonly steps: string | null
}

/**
 * Chooses a template by the words of a goal: no model is asked, and the same goal always gives the same one. What the
 * goal says first counts; the rest is looked at only where its first line speaks for none. Without any such word it is
 * the one that is there, else the first of the list.
 *
 * @param templates at least one, simplest first
 * @param present id of the template that the app is from which is there; what the goal says must speak clearly for
 *   another one that takes its place
 */
export function chooseByWords(
  goal: string,
  templates: readonly ProjectTemplate[],
  present: string | null = null,
): Choice {
  const [first] = templates
  if (first === undefined) throw new TypeError('There is no template to choose.')
  const there = templates.find(({ id }) => id === present)
  const text = goal.slice(0, MOST_READ).trim()
  const end = text.indexOf('\n')
  const ranked = [text.slice(0, end === -1 ? text.length : end), text]
    .map((part) => rank(part, templates))
    .find((scores) => scores.length > 0)
  const [best, ...others] = ranked ?? []
  if (best === undefined) {
    if (there)
      return { template: there, why: 'No word of the goal speaks for another template.', steps: null }
    const why = 'No word of the goal speaks for one of the templates, so that it is the simplest one.'
    return { template: first, why, steps: null }
  }
  const points = others.find(({ template }) => template === there)?.points ?? 0
  if (there && best.template !== there && best.points < points + CLEARLY) {
    const why = `What the goal says for another (${best.template.id}: ${quoted(best.words)}) is too little to replace it.`
    return { template: there, why, steps: null }
  }
  const rest = others.map(({ template, words }) => `${template.id} (${quoted(words)})`)
  const also = rest.length === 0 ? '' : ` Less was said for ${rest.join(', ')}.`
  const verb = best.words.length === 1 ? 'speaks' : 'speak'
  return {
    template: best.template,
    why: `${quoted(best.words)} in the goal ${verb} for it.${also}`,
    steps: null,
  }
}

/** The templates that words of a text speak for, best first. */
function rank(text: string, templates: readonly ProjectTemplate[]): Score[] {
  const found = wordsOf(text)
  const scores = templates.map((template) => {
    const keywords = KEYWORDS[template.id] ?? ownWords(template)
    const matching = [...found].filter(([word]) => Object.hasOwn(keywords, word))
    const points = matching.reduce((sum, [word]) => sum + (keywords[word] ?? 0), 0)
    return { template, points, words: matching.map(([, written]) => written) }
  })
  // Sorting keeps the order of equals: the simplest template comes first.
  return scores.filter(({ points }) => points > 0).sort((a, b) => b.points - a.points)
}

/** A text's words and pairs of words, in the form of keywords → as they were written. */
function wordsOf(text: string): Map<string, string> {
  const words = text.match(/[\p{L}\p{N}]+/gu) ?? []
  const found = new Map<string, string>()
  const add = (written: string, word: string): void => {
    const key = singular(word.toLowerCase())
    if (!found.has(key)) found.set(key, written)
  }
  for (const [n, word] of words.entries()) {
    const next = words[n + 1]
    if (next !== undefined) add(`${word} ${next}`, word + next)
    add(word, word)
  }
  return found
}

const singular = (word: string): string =>
  word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word

/** The words of a template for which nobody has chosen any. */
function ownWords({ id, label }: ProjectTemplate): Keywords {
  return Object.fromEntries([...wordsOf(`${id} ${label}`).keys()].map((word) => [word, 2]))
}

const quoted = (words: readonly string[]): string => words.map((word) => `“${word}”`).join(', ')
