import { type Html, html } from '../../http/pages/html.ts'
import { pageResponse } from '../../http/pages/page.ts'

/** Content of the sign-in page. */
interface SignInPageContent {
  /** Target of the browser after the sign-in. */
  returnTo: string
  /** The problem of the key. */
  failure?: string
  /** Whether the browser has just signed out. */
  isSignedOut?: boolean
  /** Origin of the page, if it differs from the one that `berth open` uses. */
  otherOrigin?: string
}

/** Reasons to sign in, by the path of the page that waits. */
const REASONS: Readonly<Record<string, string>> = {
  '/oauth/authorize': 'A program asks to be let in.',
  '/cli/authorize': 'A terminal asks for an API key of its own.',
}

/** Renders the page for a browser that is not signed in. */
export function signInPage({
  returnTo,
  failure,
  isSignedOut = false,
  otherOrigin,
}: SignInPageContent): Response {
  const isWrong = failure !== undefined
  const asks = REASONS[returnTo.split('?', 1)[0] ?? '']
  const body = html`${isSignedOut && html`<p class="notice" role="status">You are signed out.</p>`}
${isWrong && html`<p class="notice failure" id="failure" role="alert">${failure}</p>`}
${asks !== undefined && html`<p>${asks} Sign in first; then you are asked.</p>`}
${otherOrigin === undefined ? fromTerminal(returnTo) : otherOriginNotice(otherOrigin)}
<h2>With an API key</h2>
<p class="quiet">The first key of the instance is printed at its start, and by <code>berth env</code> in that directory.
A key opens the account. For requests and test controls use <code>berth open</code>, or the link that berth printed.</p>
<form method="post" action="/signin">
<input type="hidden" name="return_to" value="${returnTo}">
<label for="api_key">API key that reaches the whole account</label>
<input type="password" id="api_key" name="api_key" autocomplete="off" spellcheck="false" required
 ${isWrong && html`aria-invalid="true" aria-describedby="failure"`}>
<p><button>Sign in</button></p>
</form>
<p class="quiet">The <a href="/docs">API reference</a> is open to everybody who can reach this address.</p>`
  return pageResponse({ title: 'Sign in', body, status: isWrong ? 401 : 200, isNarrow: true })
}

const fromTerminal = (returnTo: string): Html => html`<h2>From the terminal</h2>
<p>Run this in the directory where berth was started. It opens a browser that is signed in; then <a href="${returnTo}">go on here</a>.</p>
<pre tabindex="0"><code>berth open</code></pre>
<p class="quiet"><code>berth open --print</code> prints the link, for a browser on another machine.</p>`

/** Does not offer `berth open`: it would sign in at another origin and return here signed out. */
const otherOriginNotice = (
  origin: string,
): Html => html`<p class="notice">You are at <strong>${origin}</strong>. <code>berth open</code> does not
sign in here, but at the address that berth prints when it starts: to a browser these are two places. Take an API key, or
that address, also in the program that sent you here.</p>`
