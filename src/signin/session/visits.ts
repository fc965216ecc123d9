import { badRequest } from '../../errors.ts'
import { readBytes } from '../../http/body.ts'
import { type HostOptions, ownName } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import type { Logger } from '../../runtime/logger.ts'
import { isSameText } from '../../runtime/secret.ts'
import { CSRF_FIELD, csrfToken } from '../pages/csrf.ts'
import { PageFailure } from '../pages/failure.ts'
import { html } from '../pages/html.ts'
import { cookiesOf } from './cookie.ts'
import { SignInNeeded } from './page-route.ts'
import type { Session, Sessions } from './sessions.ts'

/** Fields of which a person may tick several. */
const LISTS: ReadonlySet<string> = new Set(['server', 'project'])

/** Bytes that a form may have. */
const FORM_LIMIT = 2 ** 20

/** Who asks for a page. */
export interface Visit {
  /** Under which origin, as in `http://127.0.0.1:4747`. */
  readonly origin: string
  /** Null where the browser is not signed in. */
  readonly session: Session | null
  /** What the forms of the session carry; empty without one. */
  readonly csrf: string
}

/** A visit of somebody who is signed in. */
export interface SignedIn extends Visit {
  readonly session: Session
}

/** What telling who asks needs. */
interface VisitsParts {
  host: HostOptions
  sessions: () => Promise<Sessions>
  /** Tells the requests of processes on servers, which are nobody's browser. */
  isSentFromServer: (request: Request) => Promise<boolean>
  logger: Logger
}

/** Tells who asks for a page, and takes only forms that stand on our own pages. */
export class Visits {
  readonly #host: HostOptions
  readonly #sessions: () => Promise<Sessions>
  readonly #isSentFromServer: (request: Request) => Promise<boolean>
  readonly #logger: Logger

  constructor({ host, sessions, isSentFromServer, logger }: VisitsParts) {
    this.#host = host
    this.#sessions = sessions
    this.#isSentFromServer = isSentFromServer
    this.#logger = logger
  }

  /** Whether an origin is the one to which `berth open` leads; a session of another is none there. */
  isOwn(origin: string): boolean {
    const { protocol, hostname } = new URL(origin)
    return protocol === 'http:' && hostname === ownName(this.#host.bound)
  }

  /** Who asks. @throws PageFailure 403 for a session that a process on a server sends */
  async of(request: Request): Promise<Visit> {
    const origin = originOf(request, this.#host)
    return visitOf(origin, (await this.#live(request, origin))[0])
  }

  /**
   * Who asks; a browser that is not signed in is sent to do so, and comes back (`pageRoute`).
   *
   * @throws PageFailure 403 for one that brings sessions of two accounts: a page of another port of the host can lay one
   *   before ours, and the person would act for whoever laid it; and for a session that a process on a server sends
   */
  async signedIn(request: Request): Promise<SignedIn> {
    const origin = originOf(request, this.#host)
    const [first, ...others] = await this.#live(request, origin)
    if (!first) throw new SignInNeeded()
    const { session } = first
    if (others.some((one) => one.session.accountId !== session.accountId)) throw ambiguous()
    return { ...visitOf(origin, first), session }
  }

  /**
   * Reads a form of the session.
   *
   * @throws PageFailure 403 for one that does not come from a page of the session
   */
  async form(request: Request): Promise<{ visit: SignedIn; form: URLSearchParams }> {
    const form = await this.openForm(request)
    const visit = await this.signedIn(request)
    if (!isSameText(form.get(CSRF_FIELD) ?? '', visit.csrf)) throw foreign()
    return { visit, form }
  }

  /**
   * Reads a form that needs no session, such as the one that begins it.
   *
   * @throws PageFailure 403 for one that a page of elsewhere sends (Fetch, 3.2); BerthError 413, 400
   */
  async openForm(request: Request): Promise<URLSearchParams> {
    const sentFrom = request.headers.get('origin')
    const site = request.headers.get('sec-fetch-site')
    const isOwn = sentFrom === null || sentFrom === originOf(request, this.#host)
    if (!isOwn || (site !== null && site !== 'same-origin' && site !== 'none')) throw foreign()
    const type = request.headers.get('content-type') ?? ''
    if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
      throw badRequest('The form must be sent with "Content-Type: application/x-www-form-urlencoded".')
    }
    const bytes = await readBytes(request, FORM_LIMIT)
    const form = new URLSearchParams(new TextDecoder().decode(bytes))
    const names = [...form.keys()].filter((name) => !LISTS.has(name))
    if (new Set(names).size < names.length) throw badRequest('The form has a field more than once.')
    return form
  }

  /**
   * The sessions that a browser's cookies open, usually one. A browser sends its cookies to every port of a host, what
   * listens on one from within a server included: whoever has a cookie is not yet the browser.
   */
  async #live(request: Request, origin: string): Promise<Opened[]> {
    const secrets = cookiesOf(request, origin)
    if (secrets.length === 0) return []
    const sessions = await this.#sessions()
    const live = secrets.flatMap((secret) => {
      const session = sessions.of(secret)
      return session ? [{ session, secret }] : []
    })
    if (live.length > 0 && (await this.#isSentFromServer(request))) {
      this.#logger.warn('a process on a server sent the session of a browser, and was refused')
      throw fromServer()
    }
    return live
  }
}

/** A session, and the secret that opens it. */
interface Opened {
  session: Session
  secret: string
}

const visitOf = (origin: string, opened: Opened | undefined): Visit => ({
  origin,
  session: opened?.session ?? null,
  csrf: opened ? csrfToken(opened.secret) : '',
})

const foreign = (): PageFailure =>
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

const ambiguous = (): PageFailure =>
  new PageFailure(
    403,
    'This browser is signed in twice',
    html`<p class="notice failure">It brings sessions of two accounts, and one of them may be laid there by another page of this host. Nothing was changed.</p>
<p>Remove the cookies of this address in the browser's settings, then sign in again by <code>berth open</code>.</p>`,
  )
