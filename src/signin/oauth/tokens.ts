import { and, type Column, desc, eq, isNotNull, isNull, notInArray, type SQL } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import { systemRandom } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import type { OAuthClient } from './clients.ts'
import { ACCESS_TOKEN_PREFIX, type Grants } from './grants.ts'
import { OAuthProblem } from './problem.ts'
import { checkResources, originOfResource } from './resource.ts'
import { oauthGrants, oauthTokens, removeExpired } from './table.ts'

/** Milliseconds that an access token is valid. */
const ACCESS_MS = 3_600_000

/** Milliseconds that a refresh token is valid. Each use issues the next one. */
const REFRESH_MS = 30 * 24 * 3_600_000

/**
 * Milliseconds after the first use of a code or a refresh token in which its client may present it again. A program
 * that refreshes several times in parallel, or whose response was lost, does so, without any theft.
 */
const PARALLEL_MS = 10_000

/** Reports whether a repeated use follows the first one closely. A clock that was set back in between does not count. */
export const isParallel = (firstUse: number, now: number): boolean => Math.abs(now - firstUse) <= PARALLEL_MS

/**
 * Number of tokens of each kind to keep for a grant: used refresh tokens, unused ones and access tokens. Without a
 * limit, a program that refreshes in a loop would fill the disk.
 * @bound page
 */
const MAX_KEPT = 100

/** A pair of tokens for a client. */
export interface IssuedTokens {
  accessToken: string
  refreshToken: string
  /** Seconds that the access token is valid. */
  expiresIn: number
}

/** A client's request for new tokens (RFC 6749, 6). */
interface RefreshRequest {
  client: OAuthClient
  refreshToken: string
  resources: readonly string[]
  /** The origin at which the request arrived. */
  origin: string
}

/** Dependencies of the tokens. */
interface TokensDependencies {
  queries: Queries
  clock: Clock
  grants: Grants
}

/** Issues, rotates and revokes access and refresh tokens. Only their hashes are stored. */
export class OAuthTokens {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #grants: Grants

  constructor({ queries, clock, grants }: TokensDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#grants = grants
  }

  /** Issues tokens for a grant. */
  issue(grantId: string): IssuedTokens {
    const now = this.#clock.now()
    const accessToken = newSecret(systemRandom, ACCESS_TOKEN_PREFIX)
    const refreshToken = newSecret(systemRandom, 'berth_rt_')
    this.#queries
      .insert(oauthTokens)
      .values([
        { hash: hashOf(accessToken), grantId, kind: 'access', expiresAt: now + ACCESS_MS },
        { hash: hashOf(refreshToken), grantId, kind: 'refresh', expiresAt: now + REFRESH_MS },
      ])
      .run()
    removeExpired(this.#queries, now)
    return { accessToken, refreshToken, expiresIn: ACCESS_MS / 1_000 }
  }

  /**
   * Exchanges a refresh token for new tokens. Repeated uses within seconds of the first give further pairs of the same
   * grant, and each pair can be refreshed on. A later use revokes the grant, because the token may be stolen
   * (RFC 9700, 4.14.2).
   *
   * @throws OAuthProblem `invalid_grant`, `invalid_target`
   */
  refresh(refresh: RefreshRequest): IssuedTokens {
    const done = this.#queries.transaction(() => this.#refresh(refresh))
    if (done instanceof OAuthProblem) throw done
    return done
  }

  /** Returns errors instead of throwing them if the transaction must commit in spite of them. */
  #refresh({ client, refreshToken, resources, origin }: RefreshRequest) {
    const now = this.#clock.now()
    const found = this.#find(refreshToken)
    if (
      found?.token.kind !== 'refresh' ||
      found.grant.clientId !== client.id ||
      found.token.expiresAt <= now
    ) {
      return invalid('The refresh token is not known for this client, has expired or was revoked.')
    }
    const { token, grant } = found
    if (token.replacedAt !== null && !isParallel(token.replacedAt, now)) {
      this.#grants.end(grant.id)
      return invalid('The refresh token was used before. The access has ended; ask for it again.')
    }
    const issuer = originOfResource(grant.resource)
    if (issuer !== origin) return invalid(`The refresh token was issued at ${issuer}. Use it there.`)
    checkResources(resources, origin)
    if (token.replacedAt === null) {
      this.#queries.update(oauthTokens).set({ replacedAt: now }).where(eq(oauthTokens.hash, token.hash)).run()
    }
    this.#forgetOldest(grant.id)
    return this.issue(grant.id)
  }

  /** Deletes the oldest tokens of a grant, so that a limited number remains of each kind after another pair. */
  #forgetOldest(grantId: string): void {
    const refresh = eq(oauthTokens.kind, 'refresh')
    const kinds: [SQL | undefined, Column, number][] = [
      [and(refresh, isNotNull(oauthTokens.replacedAt)), oauthTokens.replacedAt, MAX_KEPT],
      [and(refresh, isNull(oauthTokens.replacedAt)), oauthTokens.expiresAt, MAX_KEPT - 1],
      [eq(oauthTokens.kind, 'access'), oauthTokens.expiresAt, MAX_KEPT - 1],
    ]
    for (const [kind, age, limit] of kinds) {
      const ofKind = and(eq(oauthTokens.grantId, grantId), kind)
      const kept = this.#queries
        .select({ hash: oauthTokens.hash })
        .from(oauthTokens)
        .where(ofKind)
        .orderBy(desc(age))
        .limit(limit)
      this.#queries
        .delete(oauthTokens)
        .where(and(ofKind, notInArray(oauthTokens.hash, kept)))
        .run()
    }
  }

  /**
   * Revokes the grant of a token of either kind. An unknown token has none.
   *
   * @throws OAuthProblem `invalid_grant` for a token of another client, which stays valid (RFC 7009, 2.1)
   */
  revoke(client: OAuthClient, token: string): void {
    const found = this.#find(token)
    if (!found) return
    if (found.grant.clientId !== client.id) throw invalid('The token was issued to another client.')
    this.#grants.end(found.grant.id)
  }

  #find(token: string) {
    return this.#queries
      .select({ token: oauthTokens, grant: oauthGrants })
      .from(oauthTokens)
      .innerJoin(oauthGrants, eq(oauthGrants.id, oauthTokens.grantId))
      .where(eq(oauthTokens.hash, hashOf(token)))
      .get()
  }
}

const invalid = (message: string): OAuthProblem => new OAuthProblem('invalid_grant', message)
