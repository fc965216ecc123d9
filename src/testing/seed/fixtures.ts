import type { FileScenario } from '../../agents/scripted/store.ts'
import type { FaultText } from '../faults/fault.ts'
import type { ClockFixture } from './clock.ts'
import type { Declared } from './declared.ts'
import type {
  AccountFixture,
  KeyFixture,
  ProjectFixture,
  SecretsFixture,
  ServerFixture,
  WebhookFixture,
} from './settle.ts'

/** What fixtures files say, part by part; of several files it follows each other. */
export interface Fixtures {
  /** At most one. */
  readonly clock: readonly Declared<ClockFixture>[]
  readonly accounts: readonly Declared<AccountFixture>[]
  readonly servers: readonly Declared<ServerFixture>[]
  readonly projects: readonly Declared<ProjectFixture>[]
  /** Those that stand apart from their server or project. */
  readonly secrets: readonly Declared<SecretsFixture>[]
  readonly keys: readonly Declared<KeyFixture>[]
  readonly webhooks: readonly Declared<WebhookFixture>[]
  readonly scenarios: readonly FileScenario[]
  readonly faults: readonly Declared<FaultFixture>[]
}

/** A fault, and the name of the account that it is for. */
export interface FaultFixture {
  readonly fault: FaultText
  readonly account?: string
}
