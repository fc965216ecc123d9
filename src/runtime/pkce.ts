import { hashOf, isSameText } from './secret.ts'

/** Returns the challenge of a verifier by the method S256 (RFC 7636, 4.2). */
export const challengeOf = (verifier: string): string => hashOf(verifier).toString('base64url')

/** Reports whether a text can be a challenge of the method S256: a SHA-256 in base64url. */
export const isChallenge = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

/** The characters of verifiers (RFC 7636, section 4.1). */
export const VERIFIER_PATTERN = '^[A-Za-z0-9._~-]{43,128}$'

const VERIFIER = new RegExp(VERIFIER_PATTERN)

/** Reports whether a verifier is the one behind a challenge of the method S256 (RFC 7636, 4.6). */
export const isVerifierOf = (verifier: string, challenge: string): boolean =>
  VERIFIER.test(verifier) && isSameText(challengeOf(verifier), challenge)
