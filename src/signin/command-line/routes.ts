import { Elysia, t } from 'elysia'
import { checkedBody } from '../../contract/request.ts'
import { BerthError, badRequest } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { accountCaller } from '../../http/caller.ts'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import { labelOf } from '../../resources/accounts/label.ts'
import type { CreatedApiKey } from '../../resources/keys/model.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { Clock } from '../../runtime/clock.ts'
import { challengeOf, VERIFIER_PATTERN } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import { redirectAnswer } from '../pages/page.ts'
import { PAGE, pageRoute } from '../session/page-route.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Visits } from '../session/visits.ts'
import { LoginCodes } from './codes.ts'
import { Guesses } from './guesses.ts'
import { type Inquiry, readInquiry } from './inquiry.ts'
import { askPage, codePage, deniedPage } from './pages.ts'

/** What the command line's sign-in needs. */
interface CommandLineParts {
  visits: Visits
  sessions: () => Promise<Sessions>
  keys: KeysService
  queries: Queries
  clock: Clock
  host: HostOptions
}

/** The answer to a code: the key, which no other answer shows, and whose it is. */
export type LoginKey = CreatedApiKey & { account_id: string }

/** Bytes that a code and its verifier may have. */
const BODY_LIMIT = 4_096

/** A code and the verifier of its challenge (RFC 7636, 4.1). */
const CodeExchange = t.Object(
  { code: t.String({ maxLength: 100 }), verifier: t.String({ pattern: VERIFIER_PATTERN }) },
  { additionalProperties: false },
)

/** `/cli`: a person lets a terminal have a key, by a code that it exchanges. */
export function commandLineRoutes({ visits, sessions, keys, queries, clock, host }: CommandLineParts) {
  const codes = new LoginCodes({ clock, random: systemRandom })
  const guesses = new Guesses(clock)
  const accountOf = (id: string) => ({ id, label: labelOf(queries, id) })
  return new Elysia({ name: 'berth/command-line' })
    .get(
      '/cli/authorize',
      pageRoute(async (request) => {
        const inquiry = readInquiry(new URL(request.url).searchParams)
        const { session, csrf } = await visits.signedIn(request)
        return askPage(inquiry, accountOf(session.accountId), csrf)
      }),
      PAGE,
    )
    .post(
      '/cli/authorize',
      pageRoute(async (request) => {
        const { visit, form } = await visits.form(request)
        const inquiry = readInquiry(form)
        const decision = form.get('decision')
        if (decision === 'deny') return sendBack(inquiry, { error: 'access_denied' }) ?? deniedPage(inquiry)
        if (decision !== 'approve') throw badRequest('"decision" must be "approve" or "deny".')
        const { challenge, label } = inquiry
        const { accountId, id: sessionId } = visit.session
        const code = codes.issue({ accountId, sessionId, challenge, label })
        return sendBack(inquiry, { code }) ?? codePage(code, inquiry)
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
          guesses.count(challenge)
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
          refuseForeign(request, host)
          return (await readJsonBody(request, BODY_LIMIT)) ?? null
        },
        detail: { hide: true },
      },
    )
}

/** Leads the browser to the terminal that listens on this machine; null where none does. */
function sendBack({ back }: Inquiry, answer: Readonly<Record<string, string>>): Response | null {
  if (back === null) return null
  const query = new URLSearchParams({ ...answer, state: back.state })
  return redirectAnswer(`http://127.0.0.1:${back.port}/callback?${query}`)
}

/** A page of elsewhere exchanges no code, whatever it knows. @throws BerthError 403 */
function refuseForeign(request: Request, host: HostOptions): void {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  const isOwn = origin === null || origin === originOf(request, host)
  if (isOwn && (site === null || site === 'same-origin' || site === 'none')) return
  throw new BerthError(
    'forbidden',
    'A code is exchanged by the terminal that asked for it, not by another page.',
  )
}
