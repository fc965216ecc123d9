import type { Clock } from '../../runtime/clock.ts'
import type { Agent, Assignment, Outcome } from '../agent.ts'
import { parseDirectives } from './directives.ts'
import { describeIdle, firstLine } from './result.ts'
import { runSteps } from './run-steps.ts'
import type { ScenarioStore } from './store.ts'

/** Dependencies of the scripted agent. */
interface ScriptedAgentDependencies {
  scenarios: ScenarioStore
  clock: Clock
}

/**
 * Follows a script, without any model: the steps of the first scenario that matches the goal, else the directives in
 * the goal. The same goal on the same files reports the same events, to the byte.
 */
export class ScriptedAgent implements Agent {
  readonly #dependencies: ScriptedAgentDependencies

  constructor(parts: ScriptedAgentDependencies) {
    this.#dependencies = parts
  }

  async work(assignment: Assignment): Promise<Outcome> {
    const { scenarios, clock } = this.#dependencies
    const { goal, accountId = null, signal } = assignment
    signal.throwIfAborted()
    const found = await scenarios.find(goal, accountId)
    if (found) {
      assignment.report({
        type: 'notice',
        text: `Follows the scenario ${JSON.stringify(firstLine(found.scenario.title))}.`,
      })
      return runSteps(found.scenario.steps, { assignment, clock, values: new Map(found.values) })
    }
    const steps = parseDirectives(goal)
    if (steps.length > 0) return runSteps(steps, { assignment, clock, values: new Map() })
    return { status: 'completed', result: describeIdle(goal), idle: true }
  }
}
