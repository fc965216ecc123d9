import { and, desc, eq, lte, ne, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Random } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'
import type { SessionDatabase } from '../../storage/session-database.ts'
import { sessions } from './table.ts'

/** A browser that is signed in. */
export interface Session {
  readonly id: string
  readonly accountId: string
  /** The API key that began it, and whose end is its end; null where a link did. */
  readonly keyId: string | null
  /** What the browser says it is. */
  readonly userAgent: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly seenAt: number
}

/** Whom a session is for, and who begins it. */
export type Beginning = Pick<Session, 'accountId' | 'keyId' | 'userAgent'>

/** What sessions need. */
interface SessionsDependencies {
  database: SessionDatabase
  clock: Clock
  ids: Ids
  random: Random
  /** Reports whether the account exists and, if a key began the session, that key. */
  counts: (accountId: string, keyId: string | null) => boolean
}

const DAY_MS = 24 * 3_600_000

/** A session ends so long after it began, */
export const SESSION_MS = 30 * DAY_MS

/** and so long after it was used last. */
const IDLE_MS = 7 * DAY_MS

/** When it was used is written this often. */
const PACE_MS = 60_000

/** A person has few browsers; the one used longest ago makes room. */
const MOST_OF_ACCOUNT = 50

/** Characters of a browser's name that are kept. */
const LONGEST_USER_AGENT = 200

/**
 * Browsers that are signed in. They are kept beside the state of the data directory: a reset of the state, or a restored
 * snapshot, neither signs anybody out nor brings back a session that was ended. A session is a secret in the browser's
 * cookie; only its hash is kept.
 */
export class Sessions {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #random: Random
  readonly #counts: SessionsDependencies['counts']

  constructor({ database, clock, ids, random, counts }: SessionsDependencies) {
    this.#queries = database.queries
    this.#clock = clock
    this.#ids = ids
    this.#random = random
    this.#counts = counts
  }

  /**
   * Signs a browser in. The secret is new each time: what a browser brought counts for nothing.
   *
   * @returns the secret for the browser's cookie
   * @throws the system's error if it cannot be written; nobody is signed in or out then
   */
  begin({ accountId, keyId, userAgent }: Beginning): string {
    const secret = newSecret(this.#random)
    const now = this.#clock.now()
    const id = this.#ids.next('ses', (id) => this.#find(eq(sessions.id, id)) !== null)
    const shown = userAgent.slice(0, LONGEST_USER_AGENT)
    const row = { hash: hashOf(secret), id, accountId, keyId, userAgent: shown, createdAt: now, seenAt: now }
    this.#queries.transaction((queries) => {
      makeRoom(queries, accountId, now)
      queries.insert(sessions).values(row).run()
    })
    return secret
  }

  /** Returns the session of a cookie's secret, or null if there is none any more. */
  of(secret: string): Session | null {
    const hash = hashOf(secret)
    const session = this.#find(eq(sessions.hash, hash))
    if (session === null || !this.#isLive(session)) return null
    const now = this.#clock.now()
    if (Math.abs(now - session.seenAt) < PACE_MS) return session
    // After the clock was set back, the session lasts as long as one that begins now.
    const times = { seenAt: now, createdAt: Math.min(session.createdAt, now) }
    try {
      this.#queries.update(sessions).set(times).where(eq(sessions.hash, hash)).run()
    } catch {
      // A page is worth more than the time of its use: the next page writes it.
    }
    return { ...session, ...times }
  }

  /** Reports whether a browser is still signed in. */
  isOpen(id: string): boolean {
    const session = this.#find(eq(sessions.id, id))
    return session !== null && this.#isLive(session)
  }

  /** Returns the sessions of an account, newest first. */
  list(accountId: string): Session[] {
    const own = this.#queries.select().from(sessions).where(eq(sessions.accountId, accountId))
    return own
      .orderBy(desc(ROWID))
      .all()
      .filter((session) => this.#isLive(session))
  }

  /**
   * Signs a browser out at once.
   *
   * @returns whether it was signed in
   * @throws the system's error if that cannot be written; the browser stays signed in then
   */
  end(accountId: string, id: string): boolean {
    const one = and(eq(sessions.accountId, accountId), eq(sessions.id, id))
    return this.#queries.delete(sessions).where(one).returning({ id: sessions.id }).all().length > 0
  }

  /** Signs out every browser of an account but one. @throws as `end` does */
  endOthers({ accountId, id }: Session): void {
    const others = and(eq(sessions.accountId, accountId), ne(sessions.id, id))
    this.#queries.delete(sessions).where(others).run()
  }

  #find(where: SQL): Session | null {
    return this.#queries.select().from(sessions).where(where).get() ?? null
  }

  #isLive({ accountId, keyId, createdAt, seenAt }: Session): boolean {
    const now = this.#clock.now()
    return now < createdAt + SESSION_MS && now < seenAt + IDLE_MS && this.#counts(accountId, keyId)
  }
}

/** The order in which sessions began. */
const ROWID = sql`rowid`

/** Deletes sessions that are over, and those of an account that were used longest ago, so that one more has room. */
function makeRoom(queries: Pick<Queries, 'delete' | 'select'>, accountId: string, now: number): void {
  const over = or(lte(sessions.createdAt, now - SESSION_MS), lte(sessions.seenAt, now - IDLE_MS))
  queries.delete(sessions).where(over).run()
  const own = eq(sessions.accountId, accountId)
  const kept = queries
    .select({ hash: sessions.hash })
    .from(sessions)
    .where(own)
    .orderBy(desc(sessions.seenAt), desc(ROWID))
    .limit(MOST_OF_ACCOUNT - 1)
  queries
    .delete(sessions)
    .where(and(own, notInArray(sessions.hash, kept)))
    .run()
}
