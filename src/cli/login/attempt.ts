import { challengeOf } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import { newSecret } from '../../runtime/secret.ts'

/** What a terminal makes up for one sign-in. */
export interface Attempt {
  /** Leaves the terminal with the code alone, for the instance (RFC 7636, 4.1). */
  readonly verifier: string
  /** S256 of the verifier, which the browser carries. */
  readonly challenge: string
  /** By what the terminal knows the browser's answer. */
  readonly state: string
}

/** A new one, by the system's randomness. */
export function newAttempt(): Attempt {
  const verifier = newSecret(systemRandom)
  return { verifier, challenge: challengeOf(verifier), state: newSecret(systemRandom) }
}

/** What the page is told of the terminal. */
export interface Asking {
  baseUrl: string
  attempt: Attempt
  /** The name of this machine. */
  host: string
  label: string | undefined
  /** Where the terminal listens; null where the code is typed in. */
  port: number | null
}

/** The address of the page on which a person approves. It carries nothing secret. */
export function pageUrl({ baseUrl, attempt, host, label, port }: Asking): string {
  const query = new URLSearchParams({
    challenge: attempt.challenge,
    ...(port === null ? {} : { state: attempt.state, redirect_port: String(port) }),
    host,
    ...(label === undefined ? {} : { label }),
  })
  return `${baseUrl}/cli/authorize?${query}`
}
