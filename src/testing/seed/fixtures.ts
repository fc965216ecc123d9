import type { FileScenario } from '../../agents/scripted/store.ts'
import type { FaultText } from '../faults/fault.ts'
import type { ClockFixture } from './clock.ts'
import type { FixtureEntry } from './fixture-entry.ts'
import type {
  AccountFixture,
  KeyFixture,
  ProjectFixture,
  SecretsFixture,
  ServerFixture,
  WebhookFixture,
} from './resolve.ts'

/** The content of fixtures files, by section. The sections of several files are joined in order. */
export interface Fixtures {
  /** At most one. */
  readonly clock: readonly FixtureEntry<ClockFixture>[]
  readonly accounts: readonly FixtureEntry<AccountFixture>[]
  readonly servers: readonly FixtureEntry<ServerFixture>[]
  readonly projects: readonly FixtureEntry<ProjectFixture>[]
  /** Secrets that are given separately from their server or project. */
  readonly secrets: readonly FixtureEntry<SecretsFixture>[]
  readonly keys: readonly FixtureEntry<KeyFixture>[]
  readonly webhooks: readonly FixtureEntry<WebhookFixture>[]
  readonly scenarios: readonly FileScenario[]
  readonly faults: readonly FixtureEntry<FaultFixture>[]
}

/** A fault, and the name of the account that it is for. */
export interface FaultFixture {
  readonly fault: FaultText
  readonly account?: string
}
