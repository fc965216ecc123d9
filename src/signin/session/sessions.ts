import { and, desc, eq, lte, ne, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Random } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Queries, SessionDatabase } from '../../storage/database.ts'
import { sessions } from './table.ts'

/** A browser that is signed in. */
export interface BrowserSession {
  readonly id: string
  readonly accountId: string
  /** The API key that began it. The session ends with the key. Null if a link began it. */
  readonly keyId: string | null
  /** The User-Agent header of the browser. */
  readonly userAgent: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly seenAt: number
  /** Whether it has the instance's rights, and may use the control API. A link to the first account begins such a session. */
  readonly isAdmin: boolean
}

/** The account, key, browser and rights of a new session. */
export type NewBrowserSession = Pick<BrowserSession, 'accountId' | 'keyId' | 'userAgent' | 'isAdmin'>

/** Dependencies of the browser sessions. */
interface BrowserSessionsDependencies {
  database: SessionDatabase
  clock: Clock
  ids: Ids
  random: Random
  /** Reports whether the account exists and, if a key began the session, that key. */
  isOwnerValid: (accountId: string, keyId: string | null) => boolean
  /** Called when a session has begun, when it is used, once a minute, and when its key has changed. */
  onChanged: (id: string, accountId: string) => void
  /** Called when a session was ended before its time. */
  onEnded: (id: string, accountId: string) => void
}

/** Who waits for the end of a session. */
interface ExpiryWatch {
  readonly listeners: Set<() => void>
  /** Waits no longer. */
  readonly stop: () => void
}

const DAY_MS = 24 * 3_600_000

/** Milliseconds from its begin after which a session ends. */
export const SESSION_MS = 30 * DAY_MS

/** Milliseconds from its last use after which a session ends. */
const IDLE_MS = 7 * DAY_MS

/** Milliseconds between writes of the time of use. */
const SEEN_UPDATE_MS = 60_000

/** Largest number of sessions of an account. The least recently used one is dropped. @bound client */
const MAX_PER_ACCOUNT = 50

/** Largest number of characters to store of a User-Agent header. @bound reader */
const MAX_USER_AGENT_LENGTH = 200

/**
 * Browsers that are signed in. They are stored separately from the state of the data directory: a reset of the state,
 * or a restored snapshot, neither signs anybody out nor restores an ended session. A session is a secret in the
 * browser's cookie; only its hash is stored.
 */
export class BrowserSessions {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #random: Random
  readonly #isOwnerValid: BrowserSessionsDependencies['isOwnerValid']
  readonly #onChanged: BrowserSessionsDependencies['onChanged']
  readonly #onEnded: BrowserSessionsDependencies['onEnded']
  /** By the session's id. */
  readonly #watches = new Map<string, ExpiryWatch>()

  constructor(dependencies: BrowserSessionsDependencies) {
    const { database, clock, ids, random, isOwnerValid, onChanged, onEnded } = dependencies
    this.#queries = database.queries
    this.#clock = clock
    this.#ids = ids
    this.#random = random
    this.#isOwnerValid = isOwnerValid
    this.#onChanged = onChanged
    this.#onEnded = onEnded
  }

  /**
   * Signs a browser in. The secret is always new; a cookie that the browser sends is ignored.
   *
   * @returns the secret for the browser's cookie
   * @throws the system's error if the session cannot be written; nothing changes then
   */
  begin({ accountId, keyId, userAgent, isAdmin }: NewBrowserSession): string {
    const secret = newSecret(this.#random)
    const now = this.#clock.now()
    const id = this.#ids.next('ses', (id) => this.#read(eq(sessions.id, id)) !== null)
    const row = {
      hash: hashOf(secret),
      id,
      accountId,
      keyId,
      userAgent: userAgent.slice(0, MAX_USER_AGENT_LENGTH),
      createdAt: now,
      seenAt: now,
      isAdmin,
    }
    const evicted = this.#queries.transaction((queries) => {
      const evicted = evictOldest(queries, accountId, now)
      queries.insert(sessions).values(row).run()
      return evicted
    })
    for (const ended of evicted) this.#onEnded(ended.id, ended.accountId)
    this.#onChanged(id, accountId)
    return secret
  }

  /** Returns the session of a cookie's secret, or null if there is none or it has ended. */
  find(secret: string): BrowserSession | null {
    const hash = hashOf(secret)
    const session = this.#read(eq(sessions.hash, hash))
    if (session === null || !this.#isLive(session)) return null
    const now = this.#clock.now()
    if (Math.abs(now - session.seenAt) < SEEN_UPDATE_MS) return session
    // After the clock was set back, the session lasts as long as one that begins now.
    const times = { seenAt: now, createdAt: Math.min(session.createdAt, now) }
    try {
      this.#queries.update(sessions).set(times).where(eq(sessions.hash, hash)).run()
    } catch {
      // The page matters more than this time. The next request writes it.
    }
    this.#onChanged(session.id, session.accountId)
    return { ...session, ...times }
  }

  /** Returns when a session ends if it is not used again, milliseconds since 1970; null if it has ended. */
  endsAt(id: string): number | null {
    const session = this.#read(eq(sessions.id, id))
    if (session === null || !this.#isLive(session)) return null
    return sessionEnd(session)
  }

  /** Calls `ended` when a session has ended by its age, unless the returned function is called before. */
  whenExpired(id: string, ended: () => void): () => void {
    const watch = this.#watches.get(id) ?? this.#watch(id)
    // Each call has an entry of its own, also one with the same listener.
    const listener = (): void => ended()
    watch.listeners.add(listener)
    return () => {
      if (watch.listeners.delete(listener) && watch.listeners.size === 0) watch.stop()
    }
  }

  /** Waits for the end of a session by one timer, however many connections it has. */
  #watch(id: string): ExpiryWatch {
    let timer: Timer | null = null
    const wait = (): void => {
      timer?.cancel()
      const now = this.#clock.now()
      const left = Math.max(1, (this.endsAt(id) ?? now) - now)
      timer = this.#clock.after(left, check, { name: 'session.end', id })
    }
    const check = (): void => {
      if (this.isOpen(id)) {
        wait()
        return
      }
      watch.stop()
      for (const notify of watch.listeners) notify()
    }
    const unsubscribe = this.#clock.onCorrection(check)
    const watch: ExpiryWatch = {
      listeners: new Set(),
      stop: () => {
        timer?.cancel()
        unsubscribe()
        if (this.#watches.get(id) === watch) this.#watches.delete(id)
      },
    }
    this.#watches.set(id, watch)
    wait()
    return watch
  }

  /** Reports whether a browser is still signed in. */
  isOpen(id: string): boolean {
    const session = this.#read(eq(sessions.id, id))
    return session !== null && this.#isLive(session)
  }

  /** Returns the sessions of an account, newest first. */
  list(accountId: string): BrowserSession[] {
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
    return this.#end(and(eq(sessions.accountId, accountId), eq(sessions.id, id))) > 0
  }

  /** Signs out every browser of an account but one. @throws as `end` does */
  endOthers({ accountId, id }: BrowserSession): void {
    this.#end(and(eq(sessions.accountId, accountId), ne(sessions.id, id)))
  }

  /** Signs out every browser of an account. @throws as `end` does */
  endAll(accountId: string): void {
    this.#end(eq(sessions.accountId, accountId))
  }

  /** Signs out every browser that a key signed in, also in case the key is restored. @throws as `end` does */
  endOfKey(keyId: string): void {
    this.#end(eq(sessions.keyId, keyId))
  }

  /** Notifies of the sessions that a key began. */
  notifyOfKey(keyId: string): void {
    const begun = this.#queries.select(OWNED).from(sessions).where(eq(sessions.keyId, keyId)).all()
    for (const { id, accountId } of begun) this.#onChanged(id, accountId)
  }

  /** @returns how many have ended */
  #end(which: SQL | undefined): number {
    const ended = this.#queries.delete(sessions).where(which).returning(OWNED).all()
    for (const { id, accountId } of ended) this.#onEnded(id, accountId)
    return ended.length
  }

  #read(where: SQL): BrowserSession | null {
    return this.#queries.select().from(sessions).where(where).get() ?? null
  }

  #isLive(session: BrowserSession): boolean {
    return this.#clock.now() < sessionEnd(session) && this.#isOwnerValid(session.accountId, session.keyId)
  }
}

/** Returns when a session ends if it is not used again, in milliseconds since 1970. */
export const sessionEnd = ({ createdAt, seenAt }: Pick<BrowserSession, 'createdAt' | 'seenAt'>): number =>
  Math.min(createdAt + SESSION_MS, seenAt + IDLE_MS)

/** What identifies a session and its account. */
const OWNED = { id: sessions.id, accountId: sessions.accountId }

/** The order in which sessions began. */
const ROWID = sql`rowid`

/**
 * Deletes ended sessions, and the account's least recently used ones to make room for another.
 *
 * @returns the deleted sessions
 */
function evictOldest(
  queries: Pick<Queries, 'delete' | 'select'>,
  accountId: string,
  now: number,
): Pick<BrowserSession, 'id' | 'accountId'>[] {
  const over = or(lte(sessions.createdAt, now - SESSION_MS), lte(sessions.seenAt, now - IDLE_MS))
  const expired = queries.delete(sessions).where(over).returning(OWNED).all()
  const own = eq(sessions.accountId, accountId)
  const kept = queries
    .select({ hash: sessions.hash })
    .from(sessions)
    .where(own)
    .orderBy(desc(sessions.seenAt), desc(ROWID))
    .limit(MAX_PER_ACCOUNT - 1)
  const evicted = queries
    .delete(sessions)
    .where(and(own, notInArray(sessions.hash, kept)))
    .returning(OWNED)
    .all()
  return [...expired, ...evicted]
}
