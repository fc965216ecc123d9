import type { Metering } from '../../../resources/accounts/metering.ts'
import type { Plans } from '../../../resources/accounts/plans.ts'
import { AccountsService } from '../../../resources/accounts/service.ts'
import type { FilesService } from '../../../resources/files/service.ts'
import type { SecretsService } from '../../../resources/secrets/service.ts'
import type { TemplateCatalog } from '../../../resources/templates/catalog.ts'
import type { SteerableClock } from '../../../runtime/clock.ts'
import type { Logger } from '../../../runtime/logger.ts'
import type { FaultStore } from '../../faults/store.ts'
import type { Fixtures } from '../fixtures.ts'
import { FixtureRecords, type ListingServices } from '../records.ts'
import { FIRST_ACCOUNT } from '../references.ts'
import type { FixtureKind } from '../table.ts'

/** The services that apply fixtures, the same that API callers use. */
export interface SeedServices extends ListingServices {
  clock: SteerableClock
  logger: Logger
  plans: Plans
  metering: Metering
  files: FilesService
  secrets: SecretsService
  templates: TemplateCatalog
  faults: FaultStore
}

/** Options of `applyFixtures`. */
export interface ApplyOptions {
  services: SeedServices
  /** The first key of the first account; null if it was deleted. */
  firstKey: string | null
  /** Of this instance, without a slash at the end. */
  baseUrl: string
  /** Fires when berth stops; waits are abandoned. */
  ended: AbortSignal
  /**
   * Whether they are the state at a start, which waits for projects, or are brought up beside what runs: bring-ups are
   * begun only, and servers that sleep are started.
   */
  mode: 'start' | 'up'
}

/** The state that the steps of one `applyFixtures` share. */
export class ApplyContext {
  readonly fixtures: Fixtures
  readonly services: SeedServices
  readonly accounts: AccountsService
  readonly records: FixtureRecords
  readonly ended: AbortSignal
  readonly firstKey: string | null
  readonly baseUrl: string
  readonly mode: ApplyOptions['mode']
  readonly #undo: (() => unknown)[] = []

  constructor(fixtures: Fixtures, { services, firstKey, baseUrl, ended, mode }: ApplyOptions) {
    this.fixtures = fixtures
    this.services = services
    this.accounts = new AccountsService(services)
    this.records = new FixtureRecords(services.queries)
    this.ended = ended
    this.firstKey = firstKey
    this.baseUrl = baseUrl
    this.mode = mode
  }

  /** Returns the id of an account by its name; undefined if it does not exist yet. */
  accountId(name: string = FIRST_ACCOUNT): string | undefined {
    const all = this.accounts.list()
    if (name === FIRST_ACCOUNT) return all.at(-1)?.id
    const id = this.records.find('account', name)?.id
    return all.some((account) => account.id === id) ? id : undefined
  }

  /** Returns the id behind a name, if its object was made already. */
  idOf(kind: FixtureKind, name: string): string {
    const row = this.records.find(kind, name)
    if (row) return row.id
    throw new Error(`the ${kind} "${name}" has not been made`)
  }

  /** Records a created fixture, to be removed again if a later step fails. */
  recordCreated(kind: FixtureKind, name: string, id: string, remove: () => unknown, source?: string): void {
    this.records.keep(kind, name, id, source)
    this.#undo.push(async () => {
      this.records.forget(kind, name)
      await remove()
    })
  }

  /** Something that is there anyway has this name. */
  recordExisting(kind: FixtureKind, name: string, id: string): void {
    if (this.records.find(kind, name)?.id !== id) this.recordCreated(kind, name, id, () => {})
  }

  /** Removes what was created so far, latest first. */
  async undo(): Promise<void> {
    for (let next = this.#undo.pop(); next; next = this.#undo.pop()) {
      try {
        await next()
      } catch (error) {
        this.services.logger.error('what a fixture has made could not be removed', { error })
      }
    }
  }
}
