import { plainName } from '../pages/parts.ts'
import { OAuthProblem } from './problem.ts'
import { redirectFault } from './redirect-uri.ts'

/** A client's description of itself, as accepted (RFC 7591, 2). */
export interface ClientMetadata {
  client_name: string
  /** URIs to which codes may be sent. */
  redirect_uris: string[]
  token_endpoint_auth_method: 'none' | 'client_secret_post' | 'client_secret_basic'
  grant_types: string[]
  response_types: string[]
  client_uri?: string
  software_id?: string
  software_version?: string
}

/** Methods by which a client can authenticate. */
export const AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic'] as const

/** Grant types of every client, independent of its request. */
export const GRANT_TYPES = ['authorization_code', 'refresh_token']

/** Largest number of redirect URIs of a client. @bound page */
const MAX_URIS = 20

/** Largest number of characters in its name and in other texts. @bound page */
const NAME_LIMIT = 100
const TEXT_LIMIT = 200

/** A registration as sent. */
type SentMetadata = Readonly<Record<string, unknown>>

/**
 * Reads a client's description of itself. Ignores unknown fields (RFC 7591, section 2).
 *
 * @throws OAuthProblem `invalid_redirect_uri`, `invalid_client_metadata` (RFC 7591, section 3.2.2)
 */
export function readClientMetadata(sent: object): ClientMetadata {
  const given = sent as SentMetadata
  // First of all: a client that asks for another grant has no redirect URI, and needs none.
  checkIncludes(given, 'grant_types', 'authorization_code')
  const redirect_uris = readRedirectUris(given.redirect_uris)
  const method = given.token_endpoint_auth_method ?? 'client_secret_basic'
  const known = AUTH_METHODS.find((name) => name === method)
  if (known === undefined)
    throw invalid(`token_endpoint_auth_method must be one of ${AUTH_METHODS.join(', ')}`)
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
  if (given.length > MAX_URIS) throw refused(`redirect_uris must have at most ${MAX_URIS} URIs`)
  for (const uri of given) {
    const fault = redirectFault(uri)
    if (fault !== null)
      throw refused(['The redirect URI', uri.slice(0, 100), fault].filter(Boolean).join(' '))
  }
  return [...new Set(given)]
}

/** Checks that a list contains the value that berth needs. Other values are ignored. */
function checkIncludes(given: SentMetadata, field: string, needed: string): void {
  const list = given[field] ?? [needed]
  if (Array.isArray(list) && list.includes(needed)) return
  throw invalid(`${field} must be a list with ${needed}`)
}

function readText(given: SentMetadata, field: string, limit: number): string | undefined {
  const text = given[field] ?? undefined
  if (text === undefined) return undefined
  if (typeof text !== 'string') throw invalid(`${field} must be a string`)
  const plain = plainName(text)
  if ([...plain].length > limit) throw invalid(`${field} must have at most ${limit} characters`)
  return plain
}

function optional(given: SentMetadata, field: 'client_uri' | 'software_id' | 'software_version') {
  const text = readText(given, field, TEXT_LIMIT)
  return text === undefined ? {} : { [field]: text }
}

const refused = (message: string): OAuthProblem => new OAuthProblem('invalid_redirect_uri', `${message}.`)

const invalid = (message: string): OAuthProblem => new OAuthProblem('invalid_client_metadata', `${message}.`)
