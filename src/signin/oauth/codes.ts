import { and, eq, lt, or } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { isVerifierOf, VERIFIER_PATTERN } from '../../runtime/pkce.ts'
import { systemRandom } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import type { BrowserSession } from '../session/sessions.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { OAuthClient } from './clients.ts'
import type { Grants } from './grants.ts'
import { OAuthProblem } from './problem.ts'
import { checkResources, originOfResource } from './resource.ts'
import { oauthClients, oauthCodes, oauthGrants, removeExpired } from './table.ts'
import { type IssuedTokens, isParallel, type OAuthTokens } from './tokens.ts'

/** Milliseconds that a code is valid (RFC 6749, 4.1.2). */
const CODE_MS = 5 * 60_000

/** The scope that a person grants a client. Empty lists mean all. */
export interface GrantedScope {
  allowedServerIds: string[]
  allowedProjectIds: string[]
}

/** A client's request to exchange a code for tokens (RFC 6749, 4.1.3; RFC 7636, 4.5). */
export interface CodeExchange {
  client: OAuthClient
  code: string
  verifier: string | null
  redirectUri: string | null
  resources: readonly string[]
  /** The origin at which the request arrived. */
  origin: string
  /** Reports whether a browser is still signed in. */
  isSignedIn: (sessionId: string) => boolean
}

/** Dependencies of the authorization codes. */
interface CodesDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  grants: Grants
  tokens: OAuthTokens
}

/** Authorization codes: issued when a person consents and exchanged for tokens once. Only their hashes are stored. */
export class Codes {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #grants: Grants
  readonly #tokens: OAuthTokens

  constructor({ queries, clock, ids, grants, tokens }: CodesDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#grants = grants
    this.#tokens = tokens
  }

  /**
   * Stores a grant.
   *
   * @returns the code, or null if the client no longer exists
   */
  issue(session: BrowserSession, request: AuthorizationRequest, reach: GrantedScope): string | null {
    const { client, redirectUri, challenge, resource } = request
    const code = newSecret(systemRandom, 'berth_ac_')
    return this.#queries.transaction(() => {
      const now = this.#clock.now()
      removeExpired(this.#queries, now)
      const stays = this.#queries
        .update(oauthClients)
        .set({ expiresAt: null })
        .where(eq(oauthClients.id, client.id))
        .returning({ id: oauthClients.id })
        .all()
      if (stays.length === 0) return null
      const id = this.#ids.next('grant', (id) => this.#hasGrant(id))
      const grant = {
        id,
        accountId: session.accountId,
        clientId: client.id,
        resource,
        ...reach,
        createdAt: now,
      }
      this.#queries.insert(oauthGrants).values(grant).run()
      this.#queries
        .insert(oauthCodes)
        .values({
          hash: hashOf(code),
          grantId: id,
          sessionId: session.id,
          redirectUri,
          challenge,
          expiresAt: now + CODE_MS,
        })
        .run()
      return code
    })
  }

  /**
   * Exchanges a code for tokens, once. A wrong verifier revokes the grant, because the code may be stolen. So does a
   * second use, unless the client itself repeats it within seconds. The new grant replaces the client's earlier ones.
   *
   * @throws OAuthProblem `invalid_grant`, `invalid_target`
   */
  exchange(exchange: CodeExchange): IssuedTokens {
    const done = this.#queries.transaction(() => this.#exchange(exchange))
    if (done instanceof OAuthProblem) throw done
    return done
  }

  /** Returns errors instead of throwing them if the transaction must commit in spite of them. */
  #exchange({ client, code, verifier, redirectUri, resources, origin, isSignedIn }: CodeExchange) {
    const now = this.#clock.now()
    const hash = hashOf(code)
    const found = this.#queries
      .select({ code: oauthCodes, grant: oauthGrants })
      .from(oauthCodes)
      .innerJoin(oauthGrants, eq(oauthGrants.id, oauthCodes.grantId))
      .where(eq(oauthCodes.hash, hash))
      .get()
    const isOwn = found?.grant.clientId === client.id
    if (!found || (!isOwn && found.code.usedAt === null))
      return invalid('The code is not known for this client, or it has expired.')
    const { grant } = found
    const isVerified = verifier !== null && isVerifierOf(verifier, found.code.challenge)
    if (found.code.usedAt !== null) {
      if (isOwn && isVerified && isParallel(found.code.usedAt, now))
        return invalid('The code was used a moment ago. Use the tokens that it gave.')
      this.#grants.end(grant.id)
      return invalid('The code was used before. All that came of it has ended.')
    }
    if (found.code.expiresAt <= now) return invalid('The code has expired. Ask for access again.')
    if (!isSignedIn(found.code.sessionId)) {
      this.#grants.end(grant.id)
      return invalid('The browser in which access was granted is signed out. Ask for access again.')
    }
    if (originOfResource(grant.resource) !== origin) {
      return invalid(`The code was issued at ${originOfResource(grant.resource)}. Exchange it there.`)
    }
    checkResources(resources, origin)
    if (redirectUri !== null && redirectUri !== found.code.redirectUri) {
      this.#grants.end(grant.id)
      return invalid('redirect_uri is not the one that the code was sent to.')
    }
    if (!isVerified) {
      this.#grants.end(grant.id)
      return invalid(verifierFault(verifier))
    }
    this.#queries.update(oauthCodes).set({ usedAt: now }).where(eq(oauthCodes.hash, hash)).run()
    for (const earlier of this.#earlierGrants(grant)) this.#grants.end(earlier)
    this.#grants.notifyIssued(grant)
    return this.#tokens.issue(grant.id)
  }

  /** Returns earlier grants of the same account to the same client. */
  #earlierGrants({ id, accountId, clientId, createdAt }: typeof oauthGrants.$inferSelect): string[] {
    const sameTime = and(eq(oauthGrants.createdAt, createdAt), lt(oauthGrants.id, id))
    return this.#queries
      .select({ id: oauthGrants.id })
      .from(oauthGrants)
      .where(
        and(
          eq(oauthGrants.clientId, clientId),
          eq(oauthGrants.accountId, accountId),
          or(lt(oauthGrants.createdAt, createdAt), sameTime),
        ),
      )
      .all()
      .map((grant) => grant.id)
  }

  #hasGrant(id: string): boolean {
    const found = this.#queries.select({ id: oauthGrants.id }).from(oauthGrants).where(eq(oauthGrants.id, id))
    return found.get() !== undefined
  }
}

/** Describes the problem of a verifier without repeating it: it is a secret. */
function verifierFault(verifier: string | null): string {
  if (verifier === null) return 'code_verifier is missing.'
  return new RegExp(VERIFIER_PATTERN).test(verifier)
    ? 'code_verifier does not fit the code_challenge.'
    : 'code_verifier must be 43 to 128 of the characters A-Z a-z 0-9 - . _ ~'
}

const invalid = (message: string): OAuthProblem => new OAuthProblem('invalid_grant', message)
