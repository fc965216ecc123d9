import type { AgentConfig } from '../../config/agents.ts'
import type { Agent, Assignment, Outcome } from '../agent.ts'
import { CommandRun } from './run.ts'

/** Has a command-line agent do the work: a program on the server, on a terminal, whose exit code decides. */
export class CommandAgent implements Agent {
  readonly #config: AgentConfig

  constructor({ config }: { config: AgentConfig }) {
    this.#config = config
  }

  async work(assignment: Assignment): Promise<Outcome> {
    assignment.signal.throwIfAborted()
    return new CommandRun(this.#config, assignment).work()
  }
}
