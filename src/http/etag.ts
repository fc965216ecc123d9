/** Returns a strong entity tag for some content (RFC 9110, section 8.8.3). */
export const etagOf = (content: string | Uint8Array): string => `"${Bun.hash(content).toString(36)}"`

/** Reports whether the client already has this version (RFC 9110, 13.1.2). The response is then 304. */
export function isUnchanged(request: Request, etag: string): boolean {
  const held = request.headers.get('if-none-match') ?? ''
  return held.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}
