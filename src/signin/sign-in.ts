import type { CredentialChanges } from '../http/credential-changes.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Logger } from '../runtime/logger.ts'
import { once } from '../runtime/once.ts'
import { systemRandom } from '../runtime/random.ts'
import type { Database } from '../storage/database.ts'
import { Grants } from './oauth/grants.ts'
import type { SignInLinks } from './session/links.ts'
import type { Sessions } from './session/sessions.ts'

/** What signing in needs. */
interface SignInDependencies {
  database: Database
  clock: Clock
  ids: Ids
  logger: Logger
  credentialChanges: CredentialChanges
  /** The data folder. */
  dataDir: string
  links: SignInLinks
  /** Whether there is the account yet and, where a key began the session, that key. */
  counts: (accountId: string, keyId: string | null) => boolean
}

/** How people and the programs that act for them get in: browsers by a session, clients by a grant. */
export class SignIn {
  /** What clients were granted. */
  readonly grants: Grants
  /** Links that sign a browser in; they stay when the state is replaced. */
  readonly links: SignInLinks
  /** The browsers that are signed in, read when they are first asked for. */
  readonly sessions: () => Promise<Sessions>
  /** Closes the sessions; null as long as nobody has asked for them. */
  #closeSessions: (() => void) | null = null

  constructor({
    database,
    clock,
    ids,
    logger,
    credentialChanges,
    dataDir,
    links,
    counts,
  }: SignInDependencies) {
    this.grants = new Grants({ database, clock, logger, credentialChanges })
    this.links = links
    this.sessions = once(async () => {
      const { Sessions } = await import('./session/sessions.ts')
      // Secrets of signing in repeat in no run: nobody compares them.
      const random = systemRandom
      const { openSessionDatabase } = await import('../storage/session-database.ts')
      const database = openSessionDatabase(dataDir)
      this.#closeSessions = () => database.close()
      return new Sessions({ database, clock, ids, random, counts })
    })
  }

  /** Writes what waits to be written, and closes the database of sessions. */
  stop(): void {
    this.grants.stop()
    this.#closeSessions?.()
  }
}
