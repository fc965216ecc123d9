import { existsSync, readFileSync } from 'node:fs'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Random } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import { writePrivate } from '../../storage/private-file.ts'

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

/** A session as the file keeps it. */
interface Kept extends Session {
  /** SHA-256 of the secret in the browser's cookie, in base64. */
  hash: string
  createdAt: number
  seenAt: number
}

/** What sessions need. */
interface SessionsDependencies {
  /** The file that keeps them. */
  path: string
  clock: Clock
  ids: Ids
  random: Random
  /** Whether there is the account yet and, where a key began the session, that key. */
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

/**
 * Browsers that are signed in, in a file beside the state of the data folder: a reset of the state, or a snapshot put in
 * its place, neither signs anybody out nor brings back a session that was ended. A session is a secret in the
 * browser's cookie, which is kept as its hash alone.
 */
export class Sessions {
  readonly #path: string
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #random: Random
  readonly #counts: SessionsDependencies['counts']
  /** Oldest first. */
  #byHash: Map<string, Kept>

  constructor({ path, clock, ids, random, counts }: SessionsDependencies) {
    this.#path = path
    this.#clock = clock
    this.#ids = ids
    this.#random = random
    this.#counts = counts
    this.#byHash = new Map(read(path).map((kept) => [kept.hash, kept]))
  }

  /**
   * Signs a browser in. The secret is new each time: what a browser brought counts for nothing.
   *
   * @throws the system's error where the file cannot be written; nobody is signed in or out then
   */
  begin({ accountId, keyId, userAgent }: Beginning): string {
    const secret = newSecret(this.#random)
    const now = this.#clock.now()
    const id = this.#ids.next('ses', (id) => [...this.#byHash.values()].some((kept) => kept.id === id))
    const hash = keyOf(secret)
    const shown = userAgent.slice(0, 200)
    this.#change(() => {
      this.#makeRoom(accountId)
      this.#byHash.set(hash, { id, accountId, keyId, userAgent: shown, createdAt: now, seenAt: now, hash })
    })
    return secret
  }

  /** The session of a cookie's secret, or null where there is none any more. */
  of(secret: string): Session | null {
    const kept = this.#byHash.get(keyOf(secret))
    const now = this.#clock.now()
    if (!kept || !this.#isLive(kept)) return null
    if (Math.abs(now - kept.seenAt) >= PACE_MS) {
      kept.seenAt = now
      // The clock may have been set back: from now on it lasts as long as one that begins now.
      kept.createdAt = Math.min(kept.createdAt, now)
      this.#note()
    }
    return kept
  }

  /** Whether a browser is signed in yet. */
  isOpen(id: string): boolean {
    return [...this.#byHash.values()].some((kept) => kept.id === id && this.#isLive(kept))
  }

  /** The sessions of an account, newest first. */
  list(accountId: string): Session[] {
    return [...this.#byHash.values()]
      .filter((kept) => kept.accountId === accountId && this.#isLive(kept))
      .reverse()
  }

  /**
   * Signs a browser out at once.
   *
   * @returns whether it was signed in
   * @throws the system's error where the file cannot be written; it stays signed in then, rather than to come back with
   *   the next start
   */
  end(accountId: string, id: string): boolean {
    for (const [hash, kept] of this.#byHash) {
      if (kept.id !== id || kept.accountId !== accountId) continue
      this.#change(() => this.#byHash.delete(hash))
      return true
    }
    return false
  }

  /** Signs out every browser of an account but one. @throws as `end` */
  endOthers({ accountId, id }: Session): void {
    this.#change(() => {
      for (const [hash, kept] of this.#byHash)
        if (kept.accountId === accountId && kept.id !== id) this.#byHash.delete(hash)
    })
  }

  #isLive(kept: Session): boolean {
    return !this.#isOver(kept) && this.#counts(kept.accountId, kept.keyId)
  }

  #isOver({ createdAt, seenAt }: Session): boolean {
    const now = this.#clock.now()
    return now >= createdAt + SESSION_MS || now >= seenAt + IDLE_MS
  }

  /** Forgets what is over, and of the account what was used longest ago, so that one more has room. */
  #makeRoom(accountId: string): void {
    for (const [hash, kept] of this.#byHash) if (this.#isOver(kept)) this.#byHash.delete(hash)
    const own = [...this.#byHash.values()].filter((kept) => kept.accountId === accountId)
    own.sort((a, b) => a.seenAt - b.seenAt)
    const surplus = Math.max(0, own.length - MOST_OF_ACCOUNT + 1)
    for (const { hash } of own.slice(0, surplus)) this.#byHash.delete(hash)
  }

  /** Changes what is kept, here and in the file, or neither. */
  #change(change: () => void): void {
    const before = new Map(this.#byHash)
    try {
      change()
      this.#write()
    } catch (error) {
      this.#byHash = before
      throw error
    }
  }

  /** Writes when sessions were used. A page is worth more than that: where it cannot be written, the next time it is. */
  #note(): void {
    try {
      this.#write()
    } catch {}
  }

  #write(): void {
    writePrivate(this.#path, `${JSON.stringify({ sessions: [...this.#byHash.values()] })}\n`)
  }
}

const keyOf = (secret: string): string => hashOf(secret).toString('base64')

/** What a file keeps; nothing where it cannot be read, and then browsers sign in anew. */
function read(path: string): Kept[] {
  if (!existsSync(path)) return []
  try {
    const { sessions } = JSON.parse(readFileSync(path, 'utf8')) as { sessions?: unknown }
    return Array.isArray(sessions) ? sessions.filter(isKept) : []
  } catch {
    return []
  }
}

const isKept = (value: unknown): value is Kept => {
  const kept = value as Partial<Kept> | null
  const texts = [kept?.id, kept?.accountId, kept?.userAgent, kept?.hash]
  const times = [kept?.createdAt, kept?.seenAt]
  const hasKey = kept?.keyId === null || typeof kept?.keyId === 'string'
  return hasKey && [...texts].every((one) => typeof one === 'string') && times.every(Number.isFinite)
}
