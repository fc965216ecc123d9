/** A strong entity tag of some content (RFC 9110, 8.8.3). */
export const etagOf = (content: string | Uint8Array): string => `"${Bun.hash(content).toString(36)}"`

/** Whether the caller holds this version already (RFC 9110, 13.1.2): the answer is then 304. */
export function isUnchanged(request: Request, etag: string): boolean {
  const held = request.headers.get('if-none-match') ?? ''
  return held.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}
