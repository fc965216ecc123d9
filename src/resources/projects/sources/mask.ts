/** Fewest characters of a secret that is masked. A shorter one would mask parts of ordinary text. */
const MIN_LENGTH = 4

/** Replaces secrets in a text by `***`, in all encodings in which programs and servers print them. */
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
  const sorted = [...spellings]
    .filter(({ length }) => length >= MIN_LENGTH)
    .sort((a, b) => b.length - a.length)
  return (text) => sorted.reduce((masked, secret) => masked.replaceAll(secret, '***'), text)
}
