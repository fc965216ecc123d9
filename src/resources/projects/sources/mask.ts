/** A secret shorter than this would mask half of every text, and is none. */
const LEAST = 4

/** Replaces secrets in texts by `***`, in the spellings in which programs and servers repeat them. */
export type Mask = (text: string) => string

/**
 * Returns a function that hides secrets.
 *
 * @param secrets passwords, tokens, and texts derived from them
 */
export function maskOf(secrets: readonly string[]): Mask {
  const spellings = new Set(
    secrets.flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      encodeURI(secret),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('base64url'),
    ]),
  )
  // A longer one first: a shorter one in it would leave the rest.
  const sorted = [...spellings].filter(({ length }) => length >= LEAST).sort((a, b) => b.length - a.length)
  return (text) => sorted.reduce((masked, secret) => masked.replaceAll(secret, '***'), text)
}
