import { Elysia, t } from 'elysia'
import { checkedBody } from '../../contract/request.ts'
import { BerthError, badRequest } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { accountCaller } from '../../http/caller.ts'
import type { HostOptions } from '../../http/host.ts'
import { isFromOwnPage, originOf } from '../../http/origin.ts'
import { type Html, html } from '../../http/pages/html.ts'
import { navigation, pageResponse, redirectResponse } from '../../http/pages/page.ts'
import { checkQuery } from '../../http/request-checks.ts'
import { accountLabel } from '../../resources/accounts/label.ts'
import type { CreatedApiKey } from '../../resources/keys/model.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { Clock } from '../../runtime/clock.ts'
import { challengeOf, VERIFIER_PATTERN } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import { CSRF_FIELD, shownName } from '../pages/parts.ts'
import { type BrowserRequests, PAGE, pageRoute } from '../session/browser-requests.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import { CODE_MS, GuessLimiter, LoginCodes } from './codes.ts'
import { type KeyRequest, keyRequestFields, readKeyRequest, refuseAppPort } from './key-request.ts'

/** Dependencies of the command line's sign-in. */
interface CommandLineRoutesOptions {
  browserRequests: BrowserRequests
  sessions: () => Promise<BrowserSessions>
  keys: KeysService
  queries: Queries
  clock: Clock
  host: HostOptions
}

/** The response to a code: the key, which no other response contains, and its account. */
export type LoginKey = CreatedApiKey & { account_id: string }

/** Largest size in bytes of the body with a code and its verifier. @bound page */
const BODY_LIMIT = 4_096

/** A code and the verifier of its challenge (RFC 7636, 4.1). */
const CodeExchange = t.Object(
  { code: t.String({ maxLength: 100 }), verifier: t.String({ pattern: VERIFIER_PATTERN }) },
  { additionalProperties: false },
)

/** Serves `/cli`: a person approves a key for a terminal, and the terminal exchanges a code for it. */
export function commandLineRoutes({
  browserRequests,
  sessions,
  keys,
  queries,
  clock,
  host,
}: CommandLineRoutesOptions) {
  const codes = new LoginCodes({ clock, random: systemRandom })
  const guesses = new GuessLimiter(clock)
  const accountOf = (id: string) => ({ id, label: accountLabel(queries, id) })
  return new Elysia({ name: 'berth/command-line' })
    .get(
      '/cli/authorize',
      pageRoute(async (request) => {
        const keyRequest = readKeyRequest(new URL(request.url).searchParams)
        refuseAppPort(queries, keyRequest)
        const { session, csrf } = await browserRequests.requireSession(request)
        return approvalPage(keyRequest, accountOf(session.accountId), csrf)
      }),
      PAGE,
    )
    .post(
      '/cli/authorize',
      pageRoute(async (request) => {
        const { browser, form } = await browserRequests.form(request)
        const keyRequest = readKeyRequest(form)
        refuseAppPort(queries, keyRequest)
        const decision = form.get('decision')
        if (decision === 'deny')
          return redirectToTerminal(keyRequest, { error: 'access_denied' }) ?? deniedPage(keyRequest)
        if (decision !== 'approve') throw badRequest('"decision" must be "approve" or "deny".')
        const { challenge, label } = keyRequest
        const { accountId, id: sessionId } = browser.session
        const code = codes.issue({ accountId, sessionId, challenge, label })
        return redirectToTerminal(keyRequest, { code }) ?? codePage(code, keyRequest)
      }),
      PAGE,
    )
    .post(
      '/cli/token',
      async ({ body, set }) => {
        const challenge = challengeOf(body.verifier)
        const checkPause = (wait: number): void => {
          if (wait === 0) return
          set.headers['retry-after'] = String(wait)
          throw new BerthError(
            'too_many_requests',
            `Too many wrong codes came. None is taken for ${wait} seconds; then run "berth login" again.`,
          )
        }
        checkPause(guesses.secondsToWait(challenge))
        const all = await sessions()
        const approval = codes.redeem(body.code, body.verifier)
        if (approval === null || !all.isOpen(approval.sessionId)) {
          const wait = guesses.secondsToWait()
          guesses.countWrong(challenge)
          checkPause(wait)
          throw badRequest(
            'The code is not valid: it is mistyped, was used, is over two minutes old, another terminal asked for it, or the browser that approved it is signed out.',
          )
        }
        const { accountId, label } = approval
        set.status = 201
        return { ...keys.create(accountCaller(accountId), { label }), account_id: accountId }
      },
      {
        body: checkedBody(CodeExchange),
        async parse({ request, set }) {
          set.headers['cache-control'] = 'no-store'
          checkQuery(request.url)
          refuseForeign(request, host)
          return (await readJsonBody(request, BODY_LIMIT)) ?? null
        },
        detail: { hide: true },
      },
    )
}

/** Redirects the browser to the terminal's port; null if the terminal does not listen. */
function redirectToTerminal(
  { callback }: KeyRequest,
  params: Readonly<Record<string, string>>,
): Response | null {
  if (callback === null) return null
  const query = new URLSearchParams({ ...params, state: callback.state })
  return redirectResponse(`http://127.0.0.1:${callback.port}/callback?${query}`)
}

/**
 * Refuses an exchange that a page of another origin sends.
 *
 * @throws BerthError 403
 */
function refuseForeign(request: Request, host: HostOptions): void {
  if (isFromOwnPage(request, originOf(request, host), { acceptsPerson: true })) return
  throw new BerthError(
    'forbidden',
    'A code is exchanged by the terminal that asked for it, not by another page.',
  )
}

/** The account that would own the key. */
interface KeyOwner {
  id: string
  label: string
}

/** Asks the person who is signed in whether a terminal may have a key. */
function approvalPage(keyRequest: KeyRequest, account: KeyOwner, csrf: string): Response {
  const { callback, host, label } = keyRequest
  const fields = Object.entries({ ...keyRequestFields(keyRequest), [CSRF_FIELD]: csrf })
  const body = html`<p>A terminal on <strong>${shownName(host)}</strong> asks for an API key of its own.</p>
<dl class="facts">
<dt>Machine</dt><dd>${shownName(host)}, as it says itself</dd>
<dt>Account</dt><dd>${account.label !== '' && [shownName(account.label), ' ']}<span class="quiet">${account.id}</span></dd>
<dt>Key</dt><dd>${shownName(label)}</dd>
<dt>May do</dt><dd>everything that this account may: use and delete all servers and projects, use up credits, manage webhooks and API keys</dd>
<dt>Valid</dt><dd>until it is deleted, with <code>berth logout</code> there or on the page <a href="/access">Access</a></dd>
</dl>
<p class="notice">Approve only if you have just run <code>berth login</code> yourself${
    callback ? '.' : ', and type the code that you get only into that terminal. Give it to nobody.'
  }</p>
<form method="post" action="/cli/authorize">
${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}<p class="actions">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="deny" class="plain">Deny</button>
</p>
</form>`
  // Browsers check the redirect after a form against the policy too.
  const formTargets = callback ? [`http://127.0.0.1:${callback.port}`] : []
  return pageResponse({
    title: 'Sign in a terminal?',
    header: navigation(),
    body,
    formTargets,
    isNarrow: true,
  })
}

/** Shows the code that the person types into the terminal. */
function codePage(code: string, { host }: KeyRequest): Response {
  const body = html`<p>Type this code into the terminal on <strong>${shownName(host)}</strong>:</p>
<p><strong class="secret code" id="code">${code}</strong></p>
<p class="quiet">It is valid once, for ${CODE_MS / 60_000} minutes. Upper or lower case and dashes do not matter.</p>
<p class="notice">Give it to nobody: it stands for your account.</p>`
  return pageResponse({ title: 'Your code', header: navigation(), body, isNarrow: true })
}

/** Shows that the terminal gets no key, if the terminal does not listen itself. */
const deniedPage = ({ host }: KeyRequest): Response =>
  pageResponse({ title: 'Denied', header: navigation(), body: denied(host), isNarrow: true })

const denied = (host: string): Html =>
  html`<p>The terminal on <strong>${shownName(host)}</strong> gets no key. If it still waits for a code, end it there with Ctrl-C.</p>
<p>If you did not run <code>berth login</code>, whoever sent you here wanted a key of your account.</p>`
