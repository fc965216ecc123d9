import { type Html, html } from '../../http/pages/html.ts'

/**
 * Characters that are invisible or change the direction of text. Some of them count as letters (Unicode,
 * DerivedCoreProperties).
 */
const INVISIBLE = /(?!\s)[\p{C}\p{Default_Ignorable_Code_Point}]/gu

/** The empty cell of Braille and the separators of lines are blank too. */
const BLANK = /[\s\p{Z}\u2800]+/gu

/** More than three marks on a letter, which would cover the lines around it. */
const PILED_MARKS = /(\p{M}{3})\p{M}+/gu

/** Removes characters from a chosen name that could make it look like another name or like none. */
export const plainName = (text: string): string =>
  text.toWellFormed().replace(INVISIBLE, '').replace(BLANK, ' ').replace(PILED_MARKS, '$1').trim()

/** Renders a chosen name. It cannot change the direction of the text around it. */
export const shownName = (text: string): Html => html`<bdi>${plainName(text)}</bdi>`

/** Renders a chosen name in quotation marks, for use in a sentence. */
export const quotedName = (text: string): Html => html`“${shownName(text)}”`

/** Scripts whose letters look like those of the others. */
const LOOKALIKES = [
  ['Latin', /\p{Script=Latin}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Greek', /\p{Script=Greek}/u],
] as const

/**
 * Returns the scripts that a word of a name mixes, as in "Claude" with a Cyrillic C; null if each word keeps to one
 * script, as genuine names do (Unicode, UTS 39, 5.1).
 */
export function mixedScripts(name: string): string[] | null {
  for (const word of name.match(/[\p{L}\p{M}\p{N}_]+/gu) ?? []) {
    const scripts = LOOKALIKES.filter(([, pattern]) => pattern.test(word)).map(([script]) => script)
    if (scripts.length > 1) return scripts
  }
  return null
}
