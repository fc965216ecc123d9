/** Finds the browser session of a request, and accepts forms from berth's own pages alone. */
import type { Viewer } from '../../contract/reference/page.ts'
import { badRequest } from '../../errors.ts'
import { readBytes } from '../../http/body.ts'
import { mayBeProjects, ownHost } from '../../http/host.ts'
import { isFromOwnPage, originOf } from '../../http/origin.ts'
import { html } from '../../http/pages/html.ts'
import { redirectResponse } from '../../http/pages/page.ts'
import { checkQuery, describeFormFault, findFormFault } from '../../http/request-checks.ts'
import { isSameText } from '../../runtime/secret.ts'
import { failurePage, PageFailure } from '../pages/failure.ts'
import { CSRF_FIELD, csrfToken, signedInHeader } from '../pages/parts.ts'
import {
  areOfSeveralAccounts,
  isStolen,
  type SentSession,
  type SentSessionsOptions,
  sentSessions,
} from './sent-sessions.ts'
import type { BrowserSession } from './sessions.ts'

export { sessionIdentity } from './sent-sessions.ts'

/** Fields that may have several values. */
const LIST_FIELDS: ReadonlySet<string> = new Set(['server', 'project'])

/** Largest size of a form, in bytes. @bound page */
const FORM_LIMIT = 2 ** 20

/** The browser that sends a request for a page. */
interface BrowserRequest {
  /** The origin of the request, as in `http://127.0.0.1:4747`. */
  readonly origin: string
  /** Null if the browser is not signed in. */
  readonly session: BrowserSession | null
  /** The CSRF token for the session's forms; empty without a session. */
  readonly csrf: string
}

/** A browser that is signed in. */
export interface SignedInRequest extends BrowserRequest {
  readonly session: BrowserSession
}

/** Identifies the browser behind a request for a page, and accepts only forms of berth's own pages. */
export class BrowserRequests {
  readonly #options: SentSessionsOptions

  constructor(options: SentSessionsOptions) {
    this.#options = options
  }

  /** Reports whether an origin is the one that `berth open` uses. Sessions of one origin are not valid at others. */
  isOwn(origin: string): boolean {
    const { protocol, hostname } = new URL(origin)
    return protocol === 'http:' && hostname === ownHost(this.#options.host.bound)
  }

  /**
   * Refuses to sign a browser in at a name that a project may have.
   *
   * @throws PageFailure 403
   */
  checkMaySignIn(request: Request): void {
    const { host } = this.#options
    const origin = originOf(request, host)
    if (!mayBeProjects(origin, host)) return
    const { port } = new URL(origin)
    throw nameOfProjects(origin, `http://${ownHost(host.bound)}${port && `:${port}`}/`)
  }

  /**
   * Identifies the browser of a request.
   *
   * @throws PageFailure 403 if a process on a server sends the session
   */
  async identify(request: Request): Promise<BrowserRequest> {
    const origin = originOf(request, this.#options.host)
    return browserRequestOf(origin, (await this.#sentSessions(request, origin))[0])
  }

  /**
   * Identifies the browser of a request. Redirects one that is not signed in to the sign-in, from which it returns
   * (`pageRoute`).
   *
   * @throws PageFailure 403 if a process on a server sends the session, or if the browser sends sessions of two
   * accounts
   */
  async requireSession(request: Request): Promise<SignedInRequest> {
    const origin = originOf(request, this.#options.host)
    const sent = await this.#sentSessions(request, origin)
    const [first] = sent
    if (!first) throw new SignInNeeded()
    if (areOfSeveralAccounts(sent)) throw ambiguous()
    return { ...browserRequestOf(origin, first), session: first.session }
  }

  /**
   * Reads a form of the session.
   *
   * @throws PageFailure 403 if the form is not from a page of the session
   */
  async form(request: Request): Promise<{ browser: SignedInRequest; form: URLSearchParams }> {
    const form = await this.openForm(request)
    const browser = await this.requireSession(request)
    if (!isSameText(form.get(CSRF_FIELD) ?? '', browser.csrf)) throw foreignForm()
    return { browser, form }
  }

  /**
   * Reads a form that needs no session, such as the sign-in's.
   *
   * @throws PageFailure 403 if a page of another origin sent it (Fetch, 3.2); BerthError 413, 400
   */
  async openForm(request: Request): Promise<URLSearchParams> {
    const own = originOf(request, this.#options.host)
    if (!isFromOwnPage(request, own, { acceptsPerson: true })) throw foreignForm()
    const type = request.headers.get('content-type') ?? ''
    if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
      throw badRequest('The form must be sent with "Content-Type: application/x-www-form-urlencoded".')
    }
    const text = new TextDecoder().decode(await readBytes(request, FORM_LIMIT))
    const fault = findFormFault(text, (name) => LIST_FIELDS.has(name))
    if (fault !== null) throw badRequest(describeFormFault(fault, 'body'))
    return new URLSearchParams(text)
  }

  async #sentSessions(request: Request, origin: string): Promise<SentSession[]> {
    const sent = await sentSessions(request, origin, this.#options)
    if (sent.length > 0 && (await isStolen(request, this.#options))) throw fromServer()
    return sent
  }
}

const browserRequestOf = (origin: string, sent: SentSession | undefined): BrowserRequest => ({
  origin,
  session: sent?.session ?? null,
  csrf: sent ? csrfToken(sent.secret) : '',
})

const foreignForm = (): PageFailure =>
  new PageFailure(
    403,
    'This form is out of date',
    html`<p>It belongs to a session that is over, or was sent from a page that is not berth's. Nothing was changed.
Go back, reload the page and try again.</p>`,
  )

const fromServer = (): PageFailure =>
  new PageFailure(
    403,
    'This does not come from a browser of yours',
    html`<p class="notice failure">A process on one of berth's servers has sent it, with the session of a browser, or it hides what it is. Nothing was changed.</p>
<p>An app that you open at an address of this machine is sent the session of your browser, and may not use it. If you
are in a browser yourself, run it as the user who runs berth, and not on a server.</p>`,
  )

/** @param own the address at which a browser can sign in */
const nameOfProjects = (origin: string, own: string): PageFailure =>
  new PageFailure(
    403,
    'Nobody signs in here',
    html`<p class="notice failure">A project may have the address <strong>${origin}</strong>, and its app would act with your session.</p>
<p>Sign in at <a href="${own}">${own}</a>. If this name is meant to be berth's own, start it with <code>--public-host</code> and the
name: no project answers there then.</p>`,
  )

const ambiguous = (): PageFailure =>
  new PageFailure(
    403,
    'This browser is signed in twice',
    html`<p class="notice failure">It brings sessions of two accounts, and one of them may be laid there by another page of this host. Nothing was changed.</p>
<p>Remove the cookies of this address in the browser's settings, then sign in again by <code>berth open</code>.</p>`,
  )

/** The options of a page's route. It reads its own body, and the OpenAPI document leaves it out. */
export const PAGE = { parse: 'none', detail: { hide: true } } as const

/** Thrown if a page needs a session and the browser is not signed in. */
class SignInNeeded extends Error {}

/** Handles a request for a page. It may throw a `PageFailure`, a `BerthError` or a `SignInNeeded`. */
type PageHandler = (
  request: Request,
  params: Readonly<Record<string, string>>,
) => Response | Promise<Response>

/**
 * Wraps a page's handler. Refuses a query that would be read otherwise than it was sent (`checkQuery`); an error that the
 * handler throws becomes a page too.
 *
 * @param checksOwnQuery whether the handler checks the query itself
 */
export const pageRoute =
  (handle: PageHandler, { checksOwnQuery = false } = {}) =>
  async ({ request, params }: { request: Request; params: Readonly<Record<string, string>> }) => {
    try {
      if (!checksOwnQuery) checkQuery(request.url)
      return await handle(request, params)
    } catch (error) {
      if (error instanceof SignInNeeded) return signInFirst(request)
      const page = failurePage(error)
      if (page) return page
      throw error
    }
  }

/** Redirects to the sign-in, which returns to the page. A form is not sent again; its page is shown instead. */
function signInFirst(request: Request): Response {
  const { pathname, search } = new URL(request.url)
  const query =
    request.method === 'GET' || request.method === 'HEAD'
      ? // Browsers leave a backslash in a query unescaped, and `returnPath` refuses one.
        `?${new URLSearchParams({ return_to: `${pathname}${search.replaceAll('\\', '%5C')}` })}`
      : ''
  return redirectResponse(`/signin${query}`)
}

/**
 * Returns a function that finds who is signed in with the browser that asks for a page that everybody may read. It
 * returns null for nobody, and for a session that is not to be trusted.
 *
 * @param path the path of the page, or of the one that it is below
 * @param needsAdmin whether the API takes only sessions that have the instance's rights
 */
export function pageViewer(
  options: SentSessionsOptions,
  path: string,
  needsAdmin: boolean,
): (request: Request) => Promise<Viewer | null> {
  const browserRequests = new BrowserRequests(options)
  return async (request) => {
    if (!request.headers.has('cookie')) return null
    const browser = await browserRequests.identify(request).catch(() => null)
    if (!browser?.session) return null
    const { session, csrf } = browser
    return { header: signedInHeader(csrf, path), csrf: needsAdmin && !session.isAdmin ? null : csrf }
  }
}
