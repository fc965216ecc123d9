import { Elysia } from 'elysia'
import { BerthError } from '../../errors.ts'
import type { ControlGuard } from './access.ts'

/** What tells nothing secret and changes nothing: the health checks of containers may come from elsewhere. */
const FOR_ALL_MACHINES = /^[a-z]+:\/\/[^/]*\/_berth\/(?:health|ready)\/?(?:\?|$)/

/**
 * What every request to the control API passes before its route and its credential, also where it needs
 * none: it comes from this machine, and from no page but the instance's own.
 *
 * A page of elsewhere can send simple requests to this machine without asking, though it cannot read the
 * answers; browsers name such a page in the header Origin (Fetch, 3.2). Programs send none. The Host header
 * has been checked before this, so that a page whose origin is that host is the instance's own.
 */
export const controlEntry = ({ exposed, addressOf }: Pick<ControlGuard, 'exposed' | 'addressOf'>) =>
  new Elysia({ name: 'berth/control-entry' }).onRequest(({ request }) => {
    if (!exposed && !FOR_ALL_MACHINES.test(request.url) && !isLoopback(addressOf(request))) {
      throw new BerthError(
        'forbidden',
        'The control API answers this machine only. Start berth with --expose-control to open it.',
      )
    }
    const origin = request.headers.get('origin')
    if (origin !== null && !isOwn(origin, request.headers.get('host'))) {
      throw new BerthError(
        'forbidden',
        `The control API answers no page of elsewhere, such as one of ${JSON.stringify(origin)}. Call it from a program, which sends no Origin header.`,
      )
    }
  })

const isLoopback = (address: string | null): boolean =>
  address !== null && (address === '::1' || /^(?:::ffff:)?127\./.test(address))

/** `null`, as pages without an address send it, is nobody's own. */
const isOwn = (origin: string, host: string | null): boolean =>
  host !== null && origin.toLowerCase().replace(/^https?:\/\//, '') === host.toLowerCase()
