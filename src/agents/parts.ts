import type { AgentConfig } from '../config/agents.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Queries } from '../storage/database.ts'
import type { ScenarioStore } from './scripted/store.ts'

/** What agents are made of. */
export interface AgentParts {
  config: AgentConfig
  queries: Queries
  clock: Clock
  logger: Logger
  scenarios: ScenarioStore
}
