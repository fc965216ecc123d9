import { Client } from '../client.ts'
import { CommandError, NO_CONNECTION } from '../errors.ts'
import type { Login } from './credentials.ts'

/** The result of deleting a key on its instance. */
export type RevokeResult =
  | 'deleted'
  /** The instance no longer knew the key. */
  | 'unknown'
  /** Nothing responds, or something that is not berth. */
  | 'unreachable'
  /** The key is limited to some servers or projects, so it may not delete keys. */
  | 'limited'
  /** The key is the last one of the whole account, which the instance keeps. */
  | 'last'

const BY_CODE: Readonly<Record<string, RevokeResult>> = {
  missing_or_invalid_api_key: 'unknown',
  not_found: 'unknown',
  [NO_CONNECTION]: 'unreachable',
  forbidden: 'limited',
  bad_request: 'last',
}

/**
 * Deletes the key of a login on its instance.
 *
 * @throws CommandError if that fails for another reason
 */
export async function revoke(
  baseUrl: string,
  { api_key, key_id }: Pick<Login, 'api_key' | 'key_id'>,
): Promise<RevokeResult> {
  const client = new Client({ baseUrl, credential: api_key, source: 'login' })
  try {
    await client.call('keys.delete', { params: { keyId: key_id } })
    return 'deleted'
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    // An error without a code of the API is not from berth.
    const revoked = error.code === undefined ? 'unreachable' : BY_CODE[error.code]
    if (revoked === undefined) throw error
    return revoked
  }
}
