/**
 * Agents, which do tasks and implement builds. `agentLoader` makes the configured one: `scripted/` follows scenarios,
 * and lines such as `run:` in a goal (`scripted/directives.ts`); `model/` talks to a language model
 * (`model/endpoint.ts` repeats a call that failed); `command/` runs a command-line agent on a terminal. All of them
 * work on a server through a `Workbench`, and report events (`events.ts`).
 *
 * The other doors are `workbench/workbench.ts` and `scripted/scenarios.ts`. To add an agent, implement `Agent` of
 * `agent.ts` in a directory of its own, and name it in `AGENTS` below. In `src/config/agents.ts` add its name to
 * `AGENTS`, its options and which of them it needs.
 */

import type { Emulators } from '../compute/emulators/emulators.ts'
import type { AgentConfig, AgentName } from '../config/agents.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { once } from '../runtime/once.ts'
import type { Queries } from '../storage/database.ts'
import type { Agent } from './agent.ts'
import type { ScenarioStore } from './scripted/store.ts'

export type { Agent, Assignment, Outcome } from './agent.ts'
export type { AgentEvent, OutputDelta, ToolData } from './events.ts'
export { type FileScenario, ScenarioStore } from './scripted/store.ts'

/** Dependencies of agents. */
interface AgentDependencies {
  config: AgentConfig
  emulators: Emulators
  queries: Queries
  clock: Clock
  logger: Logger
  scenarios: ScenarioStore
}

/** Every kind of agent, loaded on first use, so a start loads none. */
const AGENTS: Record<AgentName, (dependencies: AgentDependencies) => Promise<Agent>> = {
  scripted: async (dependencies) => new (await import('./scripted/agent.ts')).ScriptedAgent(dependencies),
  openai: async (dependencies) => (await import('./model/agent.ts')).openaiAgent(dependencies),
  anthropic: async (dependencies) => (await import('./model/agent.ts')).anthropicAgent(dependencies),
  command: async (dependencies) => new (await import('./command/agent.ts')).CommandAgent(dependencies),
}

/** Returns a function that makes the configured agent at its first call. */
export const agentLoader = (dependencies: AgentDependencies): (() => Promise<Agent>) =>
  once(() => AGENTS[dependencies.config.agent](dependencies))
