import { plainName } from '../pages/plain-name.ts'
import { OAuthProblem } from './problem.ts'
import { redirectFault } from './redirect-uri.ts'

/** What a client says of itself, as it was accepted (RFC 7591, 2). */
export interface ClientMetadata {
  client_name: string
  /** Where codes may be sent. */
  redirect_uris: string[]
  token_endpoint_auth_method: 'none' | 'client_secret_post' | 'client_secret_basic'
  grant_types: string[]
  response_types: string[]
  client_uri?: string
  software_id?: string
  software_version?: string
}

/** Ways in which a client can show who it is. */
export const AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic'] as const

/** What every client may do, whatever it asked for. */
export const GRANT_TYPES = ['authorization_code', 'refresh_token']

/** URIs that a client may have. */
const MOST_URIS = 20

/** Characters that its name, and anything else that it says, may have. */
const NAME_LIMIT = 100
const TEXT_LIMIT = 200

/** A registration as it was sent. */
type Sent = Readonly<Record<string, unknown>>

/**
 * Reads what a client says of itself. What is not known is left out (RFC 7591, 2); berth keeps what it shows or needs.
 *
 * @throws OAuthProblem `invalid_redirect_uri`, `invalid_client_metadata` (RFC 7591, 3.2.2)
 */
export function readClientMetadata(sent: object): ClientMetadata {
  const given = sent as Sent
  const redirect_uris = readRedirectUris(given.redirect_uris)
  const method = given.token_endpoint_auth_method ?? 'client_secret_basic'
  const known = AUTH_METHODS.find((name) => name === method)
  if (known === undefined)
    throw invalid(`token_endpoint_auth_method must be one of ${AUTH_METHODS.join(', ')}`)
  checkIncludes(given, 'grant_types', 'authorization_code')
  checkIncludes(given, 'response_types', 'code')
  return {
    client_name: readText(given, 'client_name', NAME_LIMIT) ?? '',
    redirect_uris,
    token_endpoint_auth_method: known,
    grant_types: GRANT_TYPES,
    response_types: ['code'],
    ...optional(given, 'client_uri'),
    ...optional(given, 'software_id'),
    ...optional(given, 'software_version'),
  }
}

function readRedirectUris(given: unknown): string[] {
  const isList = Array.isArray(given) && given.every((uri): uri is string => typeof uri === 'string')
  if (!isList || given.length === 0) throw refused('redirect_uris must be a list with at least one URI')
  if (given.length > MOST_URIS) throw refused(`redirect_uris must have at most ${MOST_URIS} URIs`)
  for (const uri of given) {
    const fault = redirectFault(uri)
    if (fault !== null)
      throw refused(['The redirect URI', uri.slice(0, 100), fault].filter(Boolean).join(' '))
  }
  return [...new Set(given)]
}

/** What a client wants beside what berth needs is passed over; berth's own must be among it. */
function checkIncludes(given: Sent, field: string, needed: string): void {
  const list = given[field] ?? [needed]
  if (Array.isArray(list) && list.includes(needed)) return
  throw invalid(`${field} must be a list with ${needed}`)
}

function readText(given: Sent, field: string, limit: number): string | undefined {
  const text = given[field] ?? undefined
  if (text === undefined) return undefined
  if (typeof text !== 'string') throw invalid(`${field} must be a string`)
  const plain = plainName(text)
  if ([...plain].length > limit) throw invalid(`${field} must have at most ${limit} characters`)
  return plain
}

function optional(given: Sent, field: 'client_uri' | 'software_id' | 'software_version') {
  const text = readText(given, field, TEXT_LIMIT)
  return text === undefined ? {} : { [field]: text }
}

const refused = (message: string): OAuthProblem => new OAuthProblem('invalid_redirect_uri', `${message}.`)

const invalid = (message: string): OAuthProblem => new OAuthProblem('invalid_client_metadata', `${message}.`)
