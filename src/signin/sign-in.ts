/**
 * Signing in: of browsers by sessions (`session/`; how long one lasts is in `session/sessions.ts`), of programs by
 * OAuth (`oauth/`; lifetimes in `oauth/tokens.ts`), of `berth login` by a code (`command-line/codes.ts`). `pages/` has
 * the parts that all pages share. A start loads `SignIn` alone; pages and sessions load at the first request for one.
 *
 * The other doors are `routes.ts` (the pages), `access/api.ts` (programs and browsers in the API) and
 * `session/browser-requests.ts` (finds the session of a browser's request). docs/access.md and docs/oauth.md say what
 * holds.
 */

import type { CredentialChanges } from '../http/credential-changes.ts'
import { LINK_PATH } from '../http/request-log.ts'
import type { Changes } from '../resources/changes/types.ts'
import type { KeysService } from '../resources/keys/service.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Logger } from '../runtime/logger.ts'
import { once } from '../runtime/once.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import { newSecret } from '../runtime/secret.ts'
import type { Database } from '../storage/database.ts'
import { Grants } from './oauth/grants.ts'
import { OneTimeSecrets } from './one-time-secrets.ts'
import type { BrowserSessions } from './session/sessions.ts'

export type { LoginKey } from './command-line/routes.ts'
export { isAccessToken } from './oauth/grants.ts'
export type { SentSessionsOptions } from './session/sent-sessions.ts'

/** Dependencies of signing in. */
interface SignInDependencies {
  database: Database
  clock: Clock
  ids: Ids
  logger: Logger
  credentialChanges: CredentialChanges
  changes: Changes
  /** The data directory. */
  dataDir: string
  links: SignInLinks
  keys: KeysService
}

/** Signs in browsers, by sessions, and clients, by grants. */
export class SignIn {
  /** The grants of clients. */
  readonly grants: Grants
  /** Links that sign a browser in. They stay if the state is replaced. */
  readonly links: SignInLinks
  /** Returns the browser sessions, read on first use. */
  readonly sessions: () => Promise<BrowserSessions>
  readonly #logger: Logger
  readonly #dataDir: string
  /** The sessions, and what closes their database; null until they are read. */
  #opened: { sessions: BrowserSessions; close: () => void } | null = null

  constructor({
    database,
    clock,
    ids,
    logger,
    credentialChanges,
    changes,
    dataDir,
    links,
    keys,
  }: SignInDependencies) {
    this.grants = new Grants({ database, clock, logger, credentialChanges, changes })
    this.links = links
    this.#logger = logger
    this.#dataDir = dataDir
    this.sessions = once(async () => {
      const { BrowserSessions } = await import('./session/sessions.ts')
      // These secrets are never reproducible, even in a deterministic run.
      const random = systemRandom
      const { openSessionDatabase } = await import('../storage/database.ts')
      const database = openSessionDatabase(dataDir)
      const onChanged = (id: string, accountId: string): void => changes.notify('browser', id, accountId)
      const onEnded = (id: string, accountId: string): void => {
        credentialChanges.notify(id)
        onChanged(id, accountId)
      }
      const isOwnerValid = (accountId: string, keyId: string | null): boolean =>
        keys.isOwnerValid(accountId, keyId)
      const dependencies = { database, clock, ids, random, isOwnerValid, onChanged, onEnded }
      const sessions = new BrowserSessions(dependencies)
      this.#opened = { sessions, close: () => database.close() }
      return sessions
    })
    keys.subscribe((id, endsSessions) => this.#keyChanged(id, endsSessions))
  }

  /** Ends the access of every program and every browser to an account. */
  revokeAll(accountId: string): void {
    this.grants.revokeAll(accountId)
    this.#changeSessions((sessions) => sessions.endAll(accountId))
  }

  /**
   * Follows the change of a key.
   *
   * @param endsSessions whether the sessions that it began end
   */
  #keyChanged(keyId: string, endsSessions: boolean): void {
    if (endsSessions) this.#changeSessions((sessions) => sessions.endOfKey(keyId))
    else this.#opened?.sessions.notifyOfKey(keyId)
  }

  /**
   * Ends sessions that do not count any more, for lack of their key or account. Their rows go as well: a restored
   * snapshot, or a new scope, may bring back the key.
   */
  #changeSessions(change: (sessions: BrowserSessions) => void): void {
    const failed = (error: unknown): void =>
      this.#logger.error('sessions that have ended could not be removed', { error })
    if (this.#opened === null) {
      this.#changeUnread(change).catch(failed)
      return
    }
    try {
      change(this.#opened.sessions)
    } catch (error) {
      failed(error)
    }
  }

  /** Reads the sessions for a change, unless nobody ever signed in. */
  async #changeUnread(change: (sessions: BrowserSessions) => void): Promise<void> {
    const { hasSessionDatabase } = await import('../storage/database.ts')
    if (hasSessionDatabase(this.#dataDir)) change(await this.sessions())
  }

  /** Writes pending changes and closes the database of sessions. */
  stop(): void {
    this.grants.stop()
    this.#opened?.close()
  }
}

/** The effect of a link. */
interface LinkTarget {
  /** The account that it signs in; null for the first account. */
  accountId: string | null
  /** Path of this instance to redirect to; by default the default page. */
  returnTo?: string
}

/**
 * Links that sign a browser in, each once. They outlive a reset of the state, so the link that the start printed
 * still leads to the first account.
 */
export class SignInLinks {
  readonly #random: Random
  readonly #waiting: OneTimeSecrets<LinkTarget>

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    this.#random = random
    this.#waiting = new OneTimeSecrets(clock)
  }

  /**
   * Creates a link that works once.
   *
   * @param lifetimeMs measured by the clock
   * @returns its path, which is a credential
   */
  issue(target: LinkTarget, lifetimeMs: number): { path: string; expiresAt: number } {
    const secret = newSecret(this.#random)
    const expiresAt = this.#waiting.keep(secret, target, target.accountId ?? '', lifetimeMs)
    return { path: `${LINK_PATH}${secret}`, expiresAt }
  }

  /**
   * Uses up a link.
   *
   * @returns null if it is unknown, used or expired
   */
  redeem(secret: string): LinkTarget | null {
    return this.#waiting.take(secret)
  }
}
