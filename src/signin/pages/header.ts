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
