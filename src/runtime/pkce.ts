import { hashOf, isSameText } from './secret.ts'

/** The challenge of a verifier by the method S256 (RFC 7636, 4.2). */
export const challengeOf = (verifier: string): string => hashOf(verifier).toString('base64url')

/** Whether a text can be a challenge of the method S256: a SHA-256 in base64url. */
export const isChallenge = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

/** What verifiers are made of (RFC 7636, 4.1). */
export const VERIFIER_PATTERN = '^[A-Za-z0-9._~-]{43,128}$'

const VERIFIER = new RegExp(VERIFIER_PATTERN)

/** Whether a verifier is the one behind a challenge of the method S256 (RFC 7636, 4.6). */
export const isVerifierOf = (verifier: string, challenge: string): boolean =>
  VERIFIER.test(verifier) && isSameText(challengeOf(verifier), challenge)
