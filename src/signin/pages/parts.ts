import { createHmac } from 'node:crypto'
import { type Html, html } from '../../http/pages/html.ts'
import { navigation } from '../../http/pages/page.ts'

/**
 * Renders the header for a person who is signed in: links to all pages, and the button to sign out.
 *
 * @param csrf the token of the session's forms
 * @param here the path of the page itself; null if no link leads to it
 */
export const signedInHeader = (csrf: string, here: string | null = null): Html => html`${navigation(here)}
<form class="out" method="post" action="/signout">${csrfInput(csrf)}<button class="plain">Sign out</button></form>`

/** Renders the field that proves that a form is on a page of the session. */
export const csrfInput = (csrf: string): Html =>
  html`<input type="hidden" name="${CSRF_FIELD}" value="${csrf}">`

/** The form field that carries the token. */
export const CSRF_FIELD = 'csrf'

/**
 * Returns the token in the forms of a session. Only a holder of the session's secret can compute it, and it reveals
 * nothing about the secret.
 */
export const csrfToken = (secret: string): string =>
  createHmac('sha256', secret).update('forms').digest('base64url')

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
