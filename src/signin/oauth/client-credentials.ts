import { percentDecoded } from '../../runtime/decode.ts'
import type { Parameters } from './parameters.ts'
import { OAuthProblem } from './problem.ts'

/** A client's identification. */
export interface ClientCredentials {
  clientId: string
  /** Null for a public client. */
  secret: string | null
  /** Whether both were sent in the Authorization header. */
  isBasic: boolean
}

/**
 * Reads how a client identifies itself: by HTTP Basic or in the form (RFC 6749, 2.3.1).
 *
 * @throws OAuthProblem 401 if the credentials are missing or unreadable, 400 if they are sent twice
 */
export function credentialsOf(request: Request, form: Parameters): ClientCredentials {
  const header = request.headers.get('authorization')
  const named = form.get('client_id')
  const secret = form.get('client_secret')
  if (header === null) {
    if (named === null) throw unknownClient('Name the client with client_id.')
    return { clientId: named, secret, isBasic: false }
  }
  const basic = readBasic(header)
  if (!basic) throw unknownClient('The Authorization header holds no credentials of a client.')
  if (secret !== null || (named !== null && named !== basic.clientId)) {
    throw new OAuthProblem('invalid_request', 'Send the credentials of the client in only one way.')
  }
  return { ...basic, isBasic: true }
}

/** Both parts are form-encoded before they are joined. */
function readBasic(header: string): { clientId: string; secret: string | null } | null {
  const encoded = /^basic +([A-Za-z0-9+/=_-]+)$/i.exec(header)?.[1]
  if (!encoded) return null
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon === -1) return null
  const [clientId = '', secret = ''] = [text.slice(0, colon), text.slice(colon + 1)].map(decode)
  return { clientId, secret: secret || null }
}

const decode = (text: string): string => percentDecoded(text.replaceAll('+', ' ')) ?? ''

const unknownClient = (message: string): OAuthProblem =>
  new OAuthProblem('invalid_client', message, 401, { 'www-authenticate': 'Basic realm="berth"' })
