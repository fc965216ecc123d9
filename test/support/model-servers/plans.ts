import type { AgentPlan } from '../../../src/agents/agent.ts'
import type { AgentEvent } from '../../../src/agents/events.ts'
import { anthropicAgent, type ModelAgentOptions, openaiAgent } from '../../../src/agents/model/agent.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { SteerableClock } from '../../../src/runtime/clock.ts'
import { MovedClock } from '../clock.ts'
import { call } from './reply.ts'

/** The templates that are to be chosen among. */
export const TEMPLATES = [
  { id: 'bun-api', label: 'API', description: 'A JSON API' },
  { id: 'static-site', label: 'Site', description: 'Pages' },
]

/** A plan that holds. */
export const PLAN: AgentPlan = { template: 'bun-api', steps: '1. Build it' }

/** The model's answer with it. */
export const planned = call('plan', PLAN)

/** A plan in the making: what has to do with the endpoint is the same as in a task, and needs no server. */
export interface Planning {
  readonly plan: Promise<AgentPlan>
  readonly events: AgentEvent[]
  /** Resolves with the text of the notice of this number, from 1. */
  notice(number: number): Promise<string>
  readonly clock: SteerableClock
  abort(reason: unknown): void
}

/** Has the agent that these flags of `serve` name make a plan; its clock stands until it is moved. */
export function makePlan(
  flags: Record<string, unknown>,
  { clock = new MovedClock(), ...options }: ModelAgentOptions & { clock?: SteerableClock } = {},
): Planning {
  const config = loadConfig({ flags, env: {}, cwd: '/' })
  const make = config.agent === 'openai' ? openaiAgent : anthropicAgent
  const agent = make({ config, clock }, options)
  const events: AgentEvent[] = []
  const waiting = new Map<number, (text: string) => void>()
  const notices = (): string[] => events.flatMap((event) => (event.type === 'notice' ? [event.text] : []))
  const abort = new AbortController()
  const plan = agent.plan({
    id: 'bld_01k0',
    goal: 'An API for birds',
    templates: TEMPLATES,
    report(event) {
      events.push(event)
      const heard = notices()
      waiting.get(heard.length)?.(heard.at(-1) ?? '')
    },
    signal: abort.signal,
  })
  plan.catch(() => {})
  return {
    plan,
    events,
    clock,
    notice(number) {
      const heard = notices()[number - 1]
      if (heard !== undefined) return Promise.resolve(heard)
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      waiting.set(number, resolve)
      plan.then(() => reject(new Error(`there was no notice ${number}`)), reject)
      return promise
    },
    abort: (reason) => abort.abort(reason),
  }
}
