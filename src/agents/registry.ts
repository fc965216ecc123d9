import type { AgentName } from '../config/agents.ts'
import { once } from '../runtime/once.ts'
import type { Agent } from './agent.ts'
import type { AgentParts } from './parts.ts'

/** Every kind of agent, loaded when it is first needed: a start pays for none. */
const AGENTS: Record<AgentName, (parts: AgentParts) => Promise<Agent>> = {
  scripted: async (parts) => new (await import('./scripted/agent.ts')).ScriptedAgent(parts),
  openai: async (parts) => (await import('./model/agent.ts')).openaiAgent(parts),
  anthropic: async (parts) => (await import('./model/agent.ts')).anthropicAgent(parts),
  command: async (parts) => new (await import('./command/agent.ts')).CommandAgent(parts),
}

/** The agent that the configuration names, made at the first call. */
export const configuredAgent = (parts: AgentParts): (() => Promise<Agent>) =>
  once(() => AGENTS[parts.config.agent](parts))
