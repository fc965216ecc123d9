import { type Html, html } from './html.ts'

/** What shows nothing, or turns the text around it, though some of it counts as letters (Unicode, DerivedCoreProperties). */
const UNSEEN = /(?!\s)[\p{C}\p{Default_Ignorable_Code_Point}]/gu

/** Blank are also the empty cell of Braille and the separators of lines. */
const BLANK = /[\s\p{Z}\u2800]+/gu

/** Marks above and below one letter beyond the third: more of them cover the lines around it. */
const PILED_MARKS = /(\p{M}{3})\p{M}+/gu

/** A name that somebody gave themselves, without what could make it look like another, or like nothing. */
export const plainName = (text: string): string =>
  text.toWellFormed().replace(UNSEEN, '').replace(BLANK, ' ').replace(PILED_MARKS, '$1').trim()

/** A name that somebody gave, as pages show it: it turns no text around it. */
export const shownName = (text: string): Html => html`<bdi>${plainName(text)}</bdi>`

/** The same within a sentence, told apart from its words. */
export const quotedName = (text: string): Html => html`“${shownName(text)}”`
