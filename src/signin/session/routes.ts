import { Elysia } from 'elysia'
import { isScoped } from '../../http/caller.ts'
import { type Html, html } from '../../http/pages/html.ts'
import { pageResponse, redirectResponse } from '../../http/pages/page.ts'
import { LINK_PATH } from '../../http/request-log.ts'
import { returnPath } from '../../http/return-path.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import { PageFailure } from '../pages/failure.ts'
import type { SignInLinks } from '../sign-in.ts'
import { type BrowserRequests, PAGE, pageRoute } from './browser-requests.ts'
import { cookieFor, expiredCookie } from './sent-sessions.ts'
import type { BrowserSessions, NewBrowserSession } from './sessions.ts'

/** Dependencies of the session's pages. */
interface SessionRoutesOptions {
  browserRequests: BrowserRequests
  sessions: () => Promise<BrowserSessions>
  links: SignInLinks
  keys: KeysService
}

/** Serves `/signin` and `/signout`, which begin and end a browser's session. */
export function sessionRoutes({ browserRequests, sessions, links, keys }: SessionRoutesOptions) {
  const otherOrigin = (origin: string) => (browserRequests.isOwn(origin) ? {} : { otherOrigin: origin })
  const signIn = async (
    request: Request,
    whom: Omit<NewBrowserSession, 'userAgent'>,
    returnTo: string,
  ): Promise<Response> => {
    const { origin, session } = await browserRequests.identify(request)
    const all = await sessions()
    if (session) all.end(session.accountId, session.id)
    const secret = all.begin({ ...whom, userAgent: request.headers.get('user-agent') ?? '' })
    return redirectResponse(returnTo, { 'set-cookie': cookieFor(origin, secret) })
  }
  return new Elysia({ name: 'berth/session' })
    .get(
      '/signin',
      pageRoute(async (request) => {
        browserRequests.checkMaySignIn(request)
        const { searchParams } = new URL(request.url)
        const returnTo = returnPath(searchParams.get('return_to'))
        const { session, origin } = await browserRequests.identify(request)
        const isSignedOut = searchParams.get('done') === 'signed-out'
        if (session) return redirectResponse(returnTo)
        return signInPage({ returnTo, isSignedOut, ...otherOrigin(origin) })
      }),
      PAGE,
    )
    .post(
      '/signin',
      pageRoute(async (request) => {
        browserRequests.checkMaySignIn(request)
        const form = await browserRequests.openForm(request)
        const returnTo = returnPath(form.get('return_to'))
        const caller = keys.authenticate((form.get('api_key') ?? '').trim())
        if (!caller || isScoped(caller)) {
          const failure = caller
            ? 'This API key reaches only some servers or projects. Take one that reaches the whole account.'
            : 'This API key is not valid here. Check that it belongs to this instance and was not deleted.'
          const { origin } = await browserRequests.identify(request)
          return signInPage({ returnTo, failure, ...otherOrigin(origin) })
        }
        const { accountId, credentialId: keyId } = caller
        return signIn(request, { accountId, keyId, isAdmin: false }, returnTo)
      }),
      PAGE,
    )
    .get(
      `${LINK_PATH}:secret`,
      pageRoute(async (request, { secret = '' }) => {
        if (!isNavigation(request)) return new Response(null, { status: 503, headers: NO_STORE })
        browserRequests.checkMaySignIn(request)
        const target = links.redeem(secret)
        const accountId = target && (target.accountId ?? keys.first.accountId())
        if (!target || !accountId || !keys.hasAccount(accountId)) {
          throw usedLink((await browserRequests.identify(request)).session !== null)
        }
        const isAdmin = accountId === keys.first.accountId()
        return signIn(request, { accountId, keyId: null, isAdmin }, returnPath(target.returnTo))
      }),
      PAGE,
    )
    .post(
      '/signout',
      pageRoute(async (request) => {
        const { browser } = await browserRequests.form(request)
        const { origin, session } = browser
        ;(await sessions()).end(session.accountId, session.id)
        return redirectResponse('/signin?done=signed-out', { 'set-cookie': expiredCookie(origin) })
      }),
      PAGE,
    )
}

const NO_STORE = { 'cache-control': 'no-store' }

/**
 * Reports whether a person opens a page. A prefetch, a link check or a page that embeds this one must not use up a
 * link.
 */
function isNavigation({ method, headers }: Request): boolean {
  const isAhead = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) => headers.has(name))
  // Sent by browsers that support it (Fetch Metadata, 2.1).
  const destination = headers.get('sec-fetch-dest') ?? 'document'
  return method === 'GET' && !isAhead && destination === 'document'
}

/**
 * @param isSignedIn whether the browser is signed in, perhaps by this very link
 */
const usedLink = (isSignedIn: boolean): PageFailure =>
  new PageFailure(
    410,
    'This link is not valid any more',
    html`<p>A link signs one browser in, once, and not for long.
${
  isSignedIn
    ? html`This browser is signed in already: <a href="/">go on</a>.`
    : html`Run <code>berth open</code> in a terminal for another (<code>berth open --print</code> prints it), or <a href="/signin">sign in with an API key</a>.`
}</p>`,
  )

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
function signInPage({ returnTo, failure, isSignedOut = false, otherOrigin }: SignInPageContent): Response {
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
