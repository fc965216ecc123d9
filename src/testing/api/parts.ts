import type { AnyElysia } from 'elysia'
import type { ScenarioStore } from '../../agents/agents.ts'
import type { Enforced, OpenPlace } from '../../compute/compute.ts'
import type { AgentName } from '../../config/agents.ts'
import type { ComputeName } from '../../config/compute.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import type { OperationCommands } from '../../contract/reference/routes.ts'
import type { HostOptions } from '../../http/host.ts'
import type { SocketUpgrader } from '../../http/web-socket.ts'
import type { AccountsDependencies, AccountsService } from '../../resources/accounts/service.ts'
import type { Outbox } from '../../resources/events/outbox.ts'
import type { ExecutionsService } from '../../resources/exec/executions.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { ProjectsService } from '../../resources/projects/service.ts'
import type { SecretsService } from '../../resources/secrets/service.ts'
import type { ServerNetworks } from '../../resources/servers/network.ts'
import type { ServersService } from '../../resources/servers/service.ts'
import type { TasksService } from '../../resources/tasks/service.ts'
import type { Deliveries } from '../../resources/webhooks/deliveries.ts'
import type { LocalWebhooks } from '../../resources/webhooks/destination.ts'
import type { WebhooksService } from '../../resources/webhooks/service.ts'
import type { SteerableClock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Masks } from '../../runtime/masks.ts'
import type { Recorder } from '../../runtime/recorder.ts'
import type { SentSessionsOptions, SignIn } from '../../signin/sign-in.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Database } from '../../storage/database.ts'
import type { FaultyCompute } from '../faults/compute/compute.ts'
import type { FaultStore } from '../faults/store.ts'
import type { InboxStore } from '../inbox/store.ts'
import type { RequestJournal } from '../journal/journal.ts'
import type { StateDiff } from '../snapshots/compare.ts'
import type { Snapshot } from '../snapshots/snapshots.ts'
import type { ControlAccess, ControlGuard } from './control-access.ts'

/** The services of the instance that the control API works on: those that accounts need, and these. */
export interface ControlServices extends AccountsDependencies {
  cipher: Cipher
  clock: SteerableClock
  compute: FaultyCompute
  openPlace: OpenPlace
  /** For ids of requests to the control API. */
  controlIds: Ids
  database: Pick<Database, 'closed'>
  deliveries: Deliveries
  executions: () => Promise<ExecutionsService>
  faults: FaultStore
  /** For ids of requests to inboxes. */
  inboxIds: Ids
  journal: RequestJournal
  keys: KeysService
  localWebhooks: LocalWebhooks
  logger: Logger
  outbox: Outbox
  projects: () => Promise<ProjectsService>
  recorder: Recorder | null
  scenarios: ScenarioStore
  secrets: Pick<SecretsService, 'values'>
  senderOf: SentSessionsOptions['senderOf']
  servers: ServersService
  signIn: SignIn
  sockets: SocketUpgrader
  tasks: () => Promise<TasksService>
  webhooks: () => Promise<WebhooksService>
}

/** What an instance gives to its control API. */
export interface ControlOptions {
  services: ControlServices
  host: HostOptions
  guard: ControlGuard
  instance: InstanceStatus
  states: StateOperations
  /** The operations of the API. */
  operations: () => Promise<OperationIndex<DescribedOperation>>
  /** For the reference. */
  commands: OperationCommands
  /** Fires when berth stops or is reset: streams end. */
  stopping: AbortSignal
}

/** Everything that a group of routes of the control API may use. */
export interface ControlParts extends ControlOptions {
  access: ControlAccess
  inbox: InboxStore
  accounts: AccountsService
  /** Returns the masks of all values that are or were secret, updated at each call. */
  masks: () => Masks
  /** Returns all routes in an app that has not responded yet, because Elysia changes the schemas of routes that it compiles. */
  whole: () => Promise<AnyElysia>
}

/** The instance's status, as the control API shows it. */
export interface InstanceStatus {
  version: string
  /** The data directory is removed at the stop. */
  ephemeral: boolean
  /** Who does tasks and builds. */
  agent: AgentName
  /** What runs servers. */
  compute: ComputeName
  enforced(): Promise<Enforced>
  /** Names of stronger isolations that were tried and cannot be used. */
  rejectedIsolations: readonly string[]
  /** Milliseconds since the start, by a clock that never jumps. */
  uptimeMs(): number
  /** Migrations and recovery are done. */
  isReady(): boolean
}

/** The result of a reset or a restore. */
export interface StateReplacement {
  /** Milliseconds, to a tenth. */
  took_ms: number
  /** The name of the snapshot of the state before, if one was asked for. */
  undo?: string
}

/** The result of a restore. */
export interface RestoredState extends StateReplacement {
  /** What the restored state sets for the networks of single servers; null is the instance's. */
  outbound_rules: ReturnType<ServerNetworks['chosen']>
}

/** Options of what replaces the state. */
export interface ReplacementOptions {
  /** Whether the state is saved as a snapshot first. */
  undo: boolean
}

/** The state of the instance as a whole. */
export interface StateOperations {
  /** Back to just-started: fixtures are applied again, the first key stays valid. */
  reset(options: ReplacementOptions): Promise<StateReplacement>
  /** Keeps the state under a name. @throws BerthError 400 for an invalid name */
  save(name: string): Promise<Snapshot>
  /**
   * Creates or updates the objects that a fixtures document declares. Everything else stays.
   *
   * @throws BerthError 400 for mistakes, and for values that the API refuses
   */
  bringUp(body: unknown): Promise<void>
  /** All snapshots, newest first. */
  snapshots(): Snapshot[]
  /**
   * Replaces the state by a snapshot.
   *
   * @throws BerthError 404, 400 if this berth cannot read it, or 500 if the state cannot be saved first
   */
  restore(name: string, options: ReplacementOptions): Promise<RestoredState>
  /**
   * Returns the differences between a snapshot and another; without another, the current state.
   *
   * @throws BerthError 404
   */
  compare(from: string, to: string | null): Promise<StateDiff>
  /** @throws BerthError 404 */
  removeSnapshot(name: string): Promise<void>
}
