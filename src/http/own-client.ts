/** The header by which berth's own clients say who they are. */
const CLIENT_HEADER = 'x-berth-client'

/** Berth's own clients. */
export const OWN_CLIENTS = ['cli', 'dashboard'] as const

/** One of berth's own clients. */
export type OwnClient = (typeof OWN_CLIENTS)[number]

/** Returns which of berth's own clients a request names as its sender; null for any other. Nothing proves it. */
export function namedClient(headers: Headers): OwnClient | null {
  const given = headers.get(CLIENT_HEADER)
  return given === null ? null : (OWN_CLIENTS.find((name) => name === given) ?? null)
}
