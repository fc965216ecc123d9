import { badRequest } from '../../errors.ts'
import type { Queries } from '../../storage/database.ts'
import { PageFailure } from '../pages/failure.ts'
import { html } from '../pages/html.ts'
import { redirectAnswer } from '../pages/page.ts'
import type { ReachableParts } from '../reachable.ts'
import { cookieEnding } from '../session/cookie.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Visits } from '../session/visits.ts'
import {
  type AuthorizationRequest,
  isSilent,
  type ReturnAddress,
  readAuthorization,
  readReturnAddress,
} from './authorization-request.ts'
import { choicesOf, readChosen } from './choices.ts'
import { type Clients, UNREGISTERED } from './clients.ts'
import type { Codes } from './codes.ts'
import { consentPage } from './consent-page.ts'
import type { Consents } from './consents.ts'
import { Parameters } from './parameters.ts'
import { OAuthProblem, problemAnswer } from './problem.ts'
import { destinationOf, withParameters } from './redirect-uri.ts'
import { originOfResource } from './resource.ts'
import { returnPage } from './return-page.ts'

/** Characters that a query may have, so that it comes back whole from the sign-in (`returnPath`). */
const QUERY_LIMIT = 7_500

/** What the authorization endpoint works on. */
export interface AuthorizeParts extends ReachableParts {
  queries: Queries
  visits: Visits
  sessions: () => Promise<Sessions>
  clients: Clients
  codes: Codes
  consents: Consents
}

/**
 * A client sends a person's browser here (RFC 6749, 3.1): shows what it asks for. Nothing is granted by this, also not to
 * a client that was let in before.
 *
 * @throws PageFailure
 */
export async function askConsent(request: Request, parts: AuthorizeParts): Promise<Response> {
  const { visits, clients, consents } = parts
  const { search, searchParams } = new URL(request.url)
  if (search.length > QUERY_LIMIT) throw tooLong()
  const query = new Parameters(searchParams)
  if (isProgram(request) && !clients.find(query.get('client_id') ?? '')) {
    return problemAnswer(new OAuthProblem('invalid_client', UNREGISTERED))
  }
  const address = readReturnAddress(query, clients)
  const { origin } = await visits.of(request)
  let asked: AuthorizationRequest
  try {
    asked = { ...readAuthorization(query, address, origin), search }
  } catch (error) {
    if (!(error instanceof OAuthProblem)) throw error
    if (!isSilent(query)) await visits.signedIn(request)
    return tellClient(address, origin, error)
  }
  const visit = await visits.signedIn(request)
  const choices = await choicesOf(visit.session.accountId, parts)
  const handle = consents.ask(visit.session, asked)
  return consentPage({ visit, request: asked, choices, handle })
}

/**
 * Whether a program asks by itself, before it opens a browser: hosts that keep their registration look in that way
 * whether it still counts, and register again where the answer is a problem they can read.
 */
function isProgram(request: Request): boolean {
  const accepted = request.headers.get('accept') ?? ''
  return /\bapplication\/json\b/.test(accepted) && !/\btext\/html\b/.test(accepted)
}

/**
 * A person has answered the page.
 *
 * @throws PageFailure for an answer to a page that the session was not shown, or that was answered before; BerthError
 *   400 for one that is none of its buttons
 */
export async function answerConsent(request: Request, parts: AuthorizeParts): Promise<Response> {
  const { visits, sessions, codes, consents } = parts
  const { visit, form } = await visits.form(request)
  const handle = form.get('handle') ?? ''
  const asked = consents.find(handle, visit.session.id)
  if (!asked || originOfResource(asked.resource) !== visit.origin) throw answered()
  const decision = form.get('decision')
  if (decision === 'switch') {
    consents.close(handle)
    const { accountId, id } = visit.session
    ;(await sessions()).end(accountId, id)
    // Nobody is signed in there: it asks for that first, and comes back.
    return redirectAnswer(`/oauth/authorize${asked.search}`, { 'set-cookie': cookieEnding(visit.origin) })
  }
  if (decision !== 'allow' && decision !== 'deny') {
    throw badRequest('"decision": expected allow, deny or switch.')
  }
  if (decision === 'deny') {
    consents.close(handle)
    const denied = { error: 'access_denied', error_description: 'The person did not let the client in.' }
    return sendBack(asked, visit.origin, denied)
  }
  const { accountId } = visit.session
  const choices = await choicesOf(accountId, parts)
  const { reach, fault } = readChosen(form, choices)
  if (fault !== undefined)
    return consentPage({ visit, request: asked, choices, handle, refused: { form, fault } })
  // Asked anew: another answer of the same page may have come while the choices were read.
  if (!consents.find(handle, visit.session.id)) throw answered()
  consents.close(handle)
  const code = codes.issue(visit.session, asked, reach)
  if (code === null) throw answered()
  return sendBack(asked, visit.origin, { code })
}

/** What an answer says. */
type Answer = Readonly<Record<string, string>>

/** Where the browser is sent with an answer for the client, which learns from whom it is (RFC 9207). */
const wayBack = (
  { redirectUri, state }: Omit<ReturnAddress, 'client'>,
  origin: string,
  answer: Answer,
): string => withParameters(redirectUri, { ...answer, state, iss: origin })

/** Sends the browser back to the client. */
const sendBack = (address: Omit<ReturnAddress, 'client'>, origin: string, answer: Answer): Response =>
  redirectAnswer(wayBack(address, origin, answer), {
    // The client's page is none of ours: it learns nothing of where the browser was.
    'referrer-policy': 'no-referrer',
  })

/**
 * Tells a client what is wrong with what it asks for. Anybody registers addresses, and nobody has agreed to anything yet:
 * away from this machine the browser goes by the person's own click alone (RFC 9700, 4.11.2).
 */
function tellClient(
  address: ReturnAddress,
  origin: string,
  { code, message, description }: OAuthProblem,
): Response {
  const answer = { error: code, error_description: description }
  if (destinationOf(address.redirectUri).kind === 'machine') return sendBack(address, origin, answer)
  return returnPage(address, message, wayBack(address, origin, answer))
}

const tooLong = (): PageFailure =>
  new PageFailure(
    414,
    'This request for access is too long',
    html`<p>Its query is over ${QUERY_LIMIT} characters.</p>`,
  )

const answered = (): PageFailure =>
  new PageFailure(
    400,
    'This page was answered, or it waited too long',
    html`<p class="notice failure">This click granted nothing. What was answered before, as by a click twice, holds.</p>
<p>Go back to the program that sent you here. Where it was not let in, let it ask again.</p>`,
  )
