import { Elysia } from 'elysia'
import { BerthError } from '../../errors.ts'
import { bearerOf } from '../../http/authentication.ts'
import { readJsonBody } from '../../http/body.ts'

/** What decides who may use the control API. */
export interface ControlGuard {
  /** The instance's own credential; API keys are refused. */
  adminToken: string
  /** Whether callers from other machines are let in too. */
  exposed: boolean
  /** The address a request comes from, or null where that is not known any more. */
  addressOf(request: Request): string | null
}

/**
 * The macro `admin` that every call of the control API carries which needs the admin token. Checked
 * before anything of the request is read, as the API's own macro `access` does. A call that needs no
 * credential and reads its body itself carries `visitor` in its place.
 */
export function controlAccess(guard: ControlGuard, bodyLimit: number) {
  const admit = (request: Request): void => {
    const token = bearerOf(request)
    if (token !== null && crypto.timingSafeEqual(digest(token), digest(guard.adminToken))) return
    throw new BerthError(
      'missing_or_invalid_api_key',
      'The control API takes the admin token, in the header "Authorization: Bearer admin_…". "berth run" gives it as BERTH_ADMIN_TOKEN, "berth env" prints it, credentials.json of the data folder has it.',
    )
  }
  return new Elysia({ name: 'berth/control-access' }).macro({
    visitor(_required: true) {
      return {
        // The body is left to the call.
        parse: () => null,
      }
    },
    admin(_required: true) {
      return {
        async parse({ request }) {
          admit(request)
          // Where this returns undefined, Elysia tries its own parsers on a body that is gone.
          return (await readJsonBody(request, bodyLimit)) ?? null
        },
        transform({ request }) {
          admit(request)
        },
      }
    },
  })
}

/** The plugin that groups of the control API mount to get `admin` and `visitor`. */
export type ControlAccess = ReturnType<typeof controlAccess>

/** Texts of any length compare in constant time by their hashes. */
const digest = (text: string): Buffer => new Bun.CryptoHasher('sha256').update(text).digest()
