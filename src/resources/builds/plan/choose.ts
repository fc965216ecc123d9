import type { ProjectTemplate } from '../../templates/model.ts'
import { KEYWORDS, type Keywords } from './keywords.ts'

/** Number of a goal's characters that are searched for keywords. @bound peer */
const MAX_GOAL_READ = 64 * 1024

/** How many points more another template needs to replace the present one. */
const REPLACEMENT_MARGIN = 3

/** A template's score for a goal. */
interface Score {
  readonly template: ProjectTemplate
  readonly points: number
  /** The goal's words that matched, as written. */
  readonly words: readonly string[]
}

/** The template chosen for a goal. */
export interface TemplateChoice {
  readonly template: ProjectTemplate
  /** Why it was chosen, as a sentence for the user. */
  readonly reason: string
  /** The agent's plan as Markdown, or null. */
  readonly steps: string | null
}

/**
 * Chooses a template by keywords in the goal, always the same one for the same goal. Searches the goal's first line, and
 * the rest only if that has no keyword. Without a keyword, returns the present template, else the first of the list.
 *
 * @param templates at least one, simplest first
 * @param present id of the template that the existing app was copied from; another one needs `REPLACEMENT_MARGIN` more
 *   points to replace it
 */
export function chooseByKeywords(
  goal: string,
  templates: readonly ProjectTemplate[],
  present: string | null = null,
): TemplateChoice {
  const [first] = templates
  if (first === undefined) throw new TypeError('There is no template to choose.')
  const presentTemplate = templates.find(({ id }) => id === present)
  const text = goal.slice(0, MAX_GOAL_READ).trim()
  const end = text.indexOf('\n')
  const ranked = [text.slice(0, end === -1 ? text.length : end), text]
    .map((part) => rank(part, templates))
    .find((scores) => scores.length > 0)
  const [best, ...others] = ranked ?? []
  if (best === undefined) {
    if (presentTemplate)
      return {
        template: presentTemplate,
        reason: 'No word of the goal speaks for another template.',
        steps: null,
      }
    const reason = 'No word of the goal speaks for one of the templates, so that it is the simplest one.'
    return { template: first, reason, steps: null }
  }
  const points = others.find(({ template }) => template === presentTemplate)?.points ?? 0
  if (presentTemplate && best.template !== presentTemplate && best.points < points + REPLACEMENT_MARGIN) {
    const reason = `What the goal says for another (${best.template.id}: ${quoted(best.words)}) is too little to replace it.`
    return { template: presentTemplate, reason, steps: null }
  }
  const rest = others.map(({ template, words }) => `${template.id} (${quoted(words)})`)
  const also = rest.length === 0 ? '' : ` Less was said for ${rest.join(', ')}.`
  const verb = best.words.length === 1 ? 'speaks' : 'speak'
  return {
    template: best.template,
    reason: `${quoted(best.words)} in the goal ${verb} for it.${also}`,
    steps: null,
  }
}

/** Returns the templates with a keyword in the text, best first. */
function rank(text: string, templates: readonly ProjectTemplate[]): Score[] {
  const found = wordsOf(text)
  const scores = templates.map((template) => {
    const keywords = KEYWORDS[template.id] ?? keywordsFromLabel(template)
    const matching = [...found].filter(([word]) => Object.hasOwn(keywords, word))
    const points = matching.reduce((sum, [word]) => sum + (keywords[word] ?? 0), 0)
    return { template, points, words: matching.map(([, written]) => written) }
  })
  // The sort is stable: of equals, the simplest template stays first.
  return scores.filter(({ points }) => points > 0).sort((a, b) => b.points - a.points)
}

/** Returns a text's words and pairs of words: normalized like keywords → as written. */
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

/** Returns keywords for a template that has none: the words of its id and label. */
function keywordsFromLabel({ id, label }: ProjectTemplate): Keywords {
  return Object.fromEntries([...wordsOf(`${id} ${label}`).keys()].map((word) => [word, 2]))
}

const quoted = (words: readonly string[]): string => words.map((word) => `“${word}”`).join(', ')
