import { Elysia, t } from 'elysia'
import { checkedBody } from '../../contract/request.ts'
import { BerthError, badRequest } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { accountCaller } from '../../http/caller.ts'
import type { HostOptions } from '../../http/host.ts'
import { isFromOwnPage, originOf } from '../../http/origin.ts'
import { redirectResponse } from '../../http/pages/page.ts'
import { checkQuery } from '../../http/request-checks.ts'
import { accountLabel } from '../../resources/accounts/label.ts'
import type { CreatedApiKey } from '../../resources/keys/model.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { Clock } from '../../runtime/clock.ts'
import { challengeOf, VERIFIER_PATTERN } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import type { BrowserRequests } from '../session/browser-requests.ts'
import { PAGE, pageRoute } from '../session/page-route.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import { refuseAppPort } from './app-port.ts'
import { GuessLimiter, LoginCodes } from './codes.ts'
import { type KeyRequest, readKeyRequest } from './key-request.ts'
import { approvalPage, codePage, deniedPage } from './pages.ts'

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

/** Largest size in bytes of the body with a code and its verifier. */
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
