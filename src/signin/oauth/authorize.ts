import { badRequest } from '../../errors.ts'
import { html } from '../../http/pages/html.ts'
import { redirectResponse } from '../../http/pages/page.ts'
import type { Clock } from '../../runtime/clock.ts'
import { systemRandom } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import { appAtPort, type ReachableSources } from '../account-resources.ts'
import { OneTimeSecrets } from '../one-time-secrets.ts'
import { PageFailure } from '../pages/failure.ts'
import type { BrowserRequests } from '../session/browser-requests.ts'
import { expiredCookie } from '../session/sent-sessions.ts'
import type { BrowserSession, BrowserSessions } from '../session/sessions.ts'
import {
  type AuthorizationRequest,
  isSilent,
  type ReturnAddress,
  readAuthorization,
  readReturnAddress,
} from './authorization-request.ts'
import { type OAuthClients, UNREGISTERED } from './clients.ts'
import type { Codes } from './codes.ts'
import { consentPage, listScopeChoices, readChosen, returnPage } from './pages.ts'
import { Parameters } from './parameters.ts'
import { OAuthProblem, problemResponse } from './problem.ts'
import { redirectDestination, withParameters } from './redirect-uri.ts'
import { originOfResource } from './resource.ts'

/** Largest number of characters in a query that survives the sign-in (`returnPath`). @bound page */
const QUERY_LIMIT = 7_500

/** Dependencies of the authorization endpoint. */
interface AuthorizeOptions extends ReachableSources {
  queries: Queries
  browserRequests: BrowserRequests
  sessions: () => Promise<BrowserSessions>
  clients: OAuthClients
  codes: Codes
  consents: Consents
}

/**
 * Shows a client's request after it has sent a person's browser here (RFC 6749, section 3.1). This grants nothing,
 * even to a client that has a grant.
 *
 * @throws PageFailure if the request cannot be shown or reported to the client
 */
export async function showConsentPage(request: Request, dependencies: AuthorizeOptions): Promise<Response> {
  const { browserRequests, clients, consents } = dependencies
  const { search } = new URL(request.url)
  if (search.length > QUERY_LIMIT) throw tooLong()
  const query = new Parameters(search.slice(1))
  if (isProgram(request) && !clients.find(query.get('client_id') ?? '')) {
    return problemResponse(new OAuthProblem('invalid_client', UNREGISTERED))
  }
  const address = readReturnAddress(query, clients)
  const { origin } = await browserRequests.identify(request)
  let asked: AuthorizationRequest
  try {
    asked = { ...readAuthorization(query, address, origin), search }
  } catch (error) {
    if (!(error instanceof OAuthProblem)) throw error
    if (!isSilent(query)) await browserRequests.requireSession(request)
    return reportToClient(address, origin, error)
  }
  const browser = await browserRequests.requireSession(request)
  const choices = await listScopeChoices(browser.session.accountId, dependencies)
  const handle = consents.open(browser.session, asked)
  const app = appOf(asked, dependencies)
  return consentPage({ browser, request: asked, choices, app, handle })
}

/**
 * Reports whether a program itself sent the request, before it opens a browser. Hosts that store their registration
 * check its validity this way, and register again if the response is an error that they can read.
 */
function isProgram(request: Request): boolean {
  const accepted = request.headers.get('accept') ?? ''
  return /\bapplication\/json\b/.test(accepted) && !/\btext\/html\b/.test(accepted)
}

/**
 * Handles a person's decision on the consent page.
 *
 * @throws PageFailure if the session was not shown the page, or the page was already used; BerthError 400 for an
 * unknown decision
 */
export async function decideConsent(request: Request, dependencies: AuthorizeOptions): Promise<Response> {
  const { browserRequests, sessions, codes, consents } = dependencies
  const { browser, form } = await browserRequests.form(request)
  const handle = form.get('handle') ?? ''
  const asked = consents.find(handle, browser.session.id)
  if (!asked || originOfResource(asked.resource) !== browser.origin) throw closedPage()
  const decision = form.get('decision')
  if (decision === 'switch') {
    consents.close(handle)
    const { accountId, id } = browser.session
    ;(await sessions()).end(accountId, id)
    // The person is signed out now: the page asks to sign in and then continues.
    return redirectResponse(`/oauth/authorize${asked.search}`, {
      'set-cookie': expiredCookie(browser.origin),
    })
  }
  if (decision !== 'allow' && decision !== 'deny') {
    throw badRequest('"decision": expected allow, deny or switch.')
  }
  if (decision === 'deny') {
    consents.close(handle)
    const denied = { error: 'access_denied', error_description: 'The person did not let the client in.' }
    return redirectToClient(asked, browser.origin, denied)
  }
  const { accountId } = browser.session
  const choices = await listScopeChoices(accountId, dependencies)
  const { scope, fault } = readChosen(form, choices)
  if (fault !== undefined)
    return consentPage({
      browser,
      request: asked,
      choices,
      app: appOf(asked, dependencies),
      handle,
      refused: { form, fault },
    })
  // Checked again: the same page may have been submitted meanwhile.
  if (!consents.find(handle, browser.session.id)) throw closedPage()
  consents.close(handle)
  const code = codes.issue(browser.session, asked, scope)
  if (code === null) throw closedPage()
  return redirectToClient(asked, browser.origin, { code })
}

/** Returns the id of the project or deployment whose app gets the answer; null for programs outside of the servers. */
function appOf({ redirectUri }: AuthorizationRequest, { queries }: AuthorizeOptions): string | null {
  const { port } = new URL(redirectUri)
  return redirectDestination(redirectUri).kind === 'machine' ? appAtPort(queries, Number(port || 80)) : null
}

/** Parameters of a response to a client. */
type ResponseParameters = Readonly<Record<string, string>>

/** Returns the URI that carries a response to the client, with its issuer (RFC 9207). */
const responseUri = (
  { redirectUri, state }: Omit<ReturnAddress, 'client'>,
  origin: string,
  params: ResponseParameters,
): string => withParameters(redirectUri, { ...params, state, iss: origin })

/** Redirects the browser to the client. */
const redirectToClient = (
  address: Omit<ReturnAddress, 'client'>,
  origin: string,
  params: ResponseParameters,
): Response =>
  redirectResponse(responseUri(address, origin, params), {
    // Hides the address of this page from the client.
    'referrer-policy': 'no-referrer',
  })

/**
 * Reports an error in its request to a client. Anybody can register an address, and the person has approved nothing
 * yet. So the browser leaves this machine only after a click (RFC 9700, section 4.11.2).
 */
function reportToClient(
  address: ReturnAddress,
  origin: string,
  { code, message, description }: OAuthProblem,
): Response {
  const params = { error: code, error_description: description }
  if (redirectDestination(address.redirectUri).kind === 'machine')
    return redirectToClient(address, origin, params)
  return returnPage(address, message, responseUri(address, origin, params))
}

const tooLong = (): PageFailure =>
  new PageFailure(
    414,
    'This request for access is too long',
    html`<p>Its query is over ${QUERY_LIMIT} characters.</p>`,
  )

const closedPage = (): PageFailure =>
  new PageFailure(
    400,
    'This page was answered, or it waited too long',
    html`<p class="notice failure">This click granted nothing. What was answered before, as by a click twice, holds.</p>
<p>Go back to the program that sent you here. If it has no access, let it ask again.</p>`,
  )

/** Milliseconds that a consent page stays open. */
const CONSENT_MS = 10 * 60_000

interface PendingConsent {
  sessionId: string
  request: AuthorizationRequest
}

/**
 * The requests on open consent pages. The form of a page contains a handle that is valid once, for the session that
 * was shown the page. So a person grants exactly the request on the page.
 */
export class Consents {
  readonly #pending: OneTimeSecrets<PendingConsent>

  constructor(clock: Clock) {
    this.#pending = new OneTimeSecrets(clock)
  }

  /**
   * Stores the request that a page shows.
   *
   * @returns the handle for its form
   */
  open({ id, accountId }: Pick<BrowserSession, 'id' | 'accountId'>, request: AuthorizationRequest): string {
    const handle = newSecret(systemRandom)
    this.#pending.keep(handle, { sessionId: id, request }, accountId, CONSENT_MS)
    return handle
  }

  /**
   * Returns the request that a page showed to the session; null if there is none, or the page was used or has
   * expired.
   */
  find(handle: string, sessionId: string): AuthorizationRequest | null {
    const pending = this.#pending.find(handle)
    return pending?.sessionId === sessionId ? pending.request : null
  }

  /** Closes a page whose decision was received. */
  close(handle: string): void {
    this.#pending.take(handle)
  }

  /** Returns the ids of clients on open pages. */
  pendingClients(): ReadonlySet<string> {
    return new Set(this.#pending.values().map(({ request }) => request.client.id))
  }
}
