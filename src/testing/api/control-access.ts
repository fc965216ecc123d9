import { Elysia } from 'elysia'
import { BerthError } from '../../errors.ts'
import { bearerOf, type Callers, streamsOf } from '../../http/authentication.ts'
import { readJsonBody } from '../../http/body.ts'
import { isOriginOfHost } from '../../http/origin.ts'
import { checkRequest } from '../../http/request-checks.ts'

/** The rules of access to the control API. */
export interface ControlGuard {
  /** The instance's own credential; API keys are refused. */
  adminToken: string
  /** The callers of running requests. Those with the session of a browser are identified already. */
  callers: Pick<Callers, 'identified' | 'whileValid'>
  /** Whether callers from other machines are let in too. */
  exposed: boolean
  /** Returns the address that a request comes from, or null if it is no longer known. */
  addressOf(request: Request): string | null
}

/**
 * Returns the plugin with the macros `admin`, for operations that need the admin token or the session of a browser that
 * has the instance's rights, and `visitor`, for operations that need no credential and read the body themselves. The
 * credential is checked before anything of the request is read, as the API's macro `access` does.
 */
export function controlAccess({ adminToken, callers }: ControlGuard, bodyLimit: number) {
  const admit = (request: Request): void => {
    const token = bearerOf(request)
    if (token !== null && crypto.timingSafeEqual(digest(token), digest(adminToken))) return
    const session = callers.identified(request)
    if (session?.isAdmin) return
    if (session !== null) throw lacksRights()
    throw new BerthError(
      'missing_or_invalid_api_key',
      'The control API takes the admin token, in the header "Authorization: Bearer admin_…". "berth run" gives it as BERTH_ADMIN_TOKEN, "berth env" prints it, credentials.json of the data directory has it.',
    )
  }
  return new Elysia({ name: 'berth/control-access' }).macro({
    visitor(_required: true) {
      return {
        // The body is left to the call.
        parse: () => null,
      }
    },
    admin(admission: AdminAdmission) {
      return {
        async parse({ request }) {
          admit(request)
          if (admission !== true) return null
          // If this returned undefined, Elysia would try its own parsers on the consumed body.
          return (await readJsonBody(request, bodyLimit)) ?? null
        },
        transform({ request }) {
          admit(request)
          checkRequest(request)
        },
        resolve({ request }) {
          // The admin token lasts as long as the instance; a session may end before.
          return streamsOf(request, callers, () => admit(request))
        },
      }
    },
  })
}

const lacksRights = (): BerthError =>
  new BerthError(
    'forbidden',
    'The session of this browser reaches its account, but not the control API. Only a browser that signed in to the first account by a link has the rights of the instance: run "berth open", or open the link that "berth open --print" prints, or the one that berth printed when it started.',
  )

/** How an operation admits its callers: with `readsBytes` it reads the body itself. */
type AdminAdmission = true | { readonly readsBytes: true }

/** The plugin that groups of the control API mount to get `admin` and `visitor`. */
export type ControlAccess = ReturnType<typeof controlAccess>

/** Texts of any length compare in constant time by their hashes. */
const digest = (text: string): Buffer => new Bun.CryptoHasher('sha256').update(text).digest()

/** Health checks of containers may come from other machines. They reveal no secret and change nothing. */
const FOR_ALL_MACHINES = /^[a-z]+:\/\/[^/]*\/_berth\/(?:health|ready)\/?(?:\?|$)/

/**
 * Checks every request to the control API before its route and credential: it must come from this machine, and from
 * no web page except the instance's own.
 *
 * A foreign page can send simple requests to this machine without asking, though it cannot read the responses;
 * browsers name the page in the header Origin (Fetch, 3.2). Programs send none. The Host header has been checked
 * before, so a page whose origin is that host is the instance's own.
 */
export const controlEntry = ({ exposed, addressOf }: Pick<ControlGuard, 'exposed' | 'addressOf'>) =>
  new Elysia({ name: 'berth/control-entry' }).onRequest(({ request }) => {
    if (!exposed && !FOR_ALL_MACHINES.test(request.url) && !isLoopback(addressOf(request))) {
      throw new BerthError(
        'forbidden',
        'The control API accepts requests of this machine only. Start berth with --expose-control to open it.',
      )
    }
    const origin = request.headers.get('origin')
    if (origin !== null && !isOriginOfHost(origin, request.headers.get('host'))) {
      throw new BerthError(
        'forbidden',
        `The control API accepts no requests of other web pages, such as one of ${JSON.stringify(origin)}. Call it from a program, which sends no Origin header.`,
      )
    }
  })

const isLoopback = (address: string | null): boolean =>
  address !== null && (address === '::1' || /^(?:::ffff:)?127\./.test(address))
