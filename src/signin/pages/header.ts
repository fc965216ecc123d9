import { CSRF_FIELD } from './csrf.ts'
import { type Html, html } from './html.ts'

/** A page that the header leads to. */
const PAGES = [
  { path: '/access', name: 'Access' },
  { path: '/docs', name: 'API reference' },
] as const

/**
 * What stands in the header where somebody is signed in: the ways to all pages, and the way out.
 *
 * @param csrf the token of the session's forms
 * @param here the path of the page itself
 */
export const signedInHeader = (
  csrf: string,
  here: string | null = null,
): Html => html`<nav aria-label="Pages">
${PAGES.map(({ path, name }) => html`<a href="${path}" ${path === here && html`aria-current="page"`}>${name}</a>\n`)}
</nav>
<form class="out" method="post" action="/signout">${csrfInput(csrf)}<button class="plain">Sign out</button></form>`

/** The field by which a form shows that it stands on a page of the session. */
export const csrfInput = (csrf: string): Html =>
  html`<input type="hidden" name="${CSRF_FIELD}" value="${csrf}">`
