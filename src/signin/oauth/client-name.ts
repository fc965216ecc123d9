import type { ClientMetadata } from './client-metadata.ts'

/** What a client is called on pages: what it calls itself, or where it is where it says nothing. */
export function nameOf({ client_name, redirect_uris }: ClientMetadata): string {
  const [uri = ''] = redirect_uris
  return client_name || `A client at ${/^[^:]+:\/*[^/?]*/.exec(uri)?.[0] ?? 'an unknown place'}`
}
