import type { AgentConfig } from '../../config/agents.ts'
import { AgentError } from '../agent.ts'

/** The variable that passes a goal to the shell, which unsets it. */
const GOAL_VARIABLE = 'BERTH_GOAL'

/**
 * Longest argument, or variable with its name, that Linux passes to a program, with room for the terminating zero.
 */
const MAX_ARGUMENT = 128 * 1024 - 1

/** Matches a command line with a place for the goal. */
const PLACEHOLDER = /"\$(?:[1@]|\{[1@]\})"/

/** A command line with its variables and input. */
export interface CommandLine {
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  /** Standard input instead of the terminal. */
  readonly stdin?: Uint8Array
}

/**
 * Returns how to run the agent's command with a goal. No shell interprets the goal: it is the last argument, or
 * replaces `"$1"` in the command line, or is standard input. On this machine only the agent's own arguments show it
 * to others.
 *
 * @throws AgentError if the goal cannot be passed this way
 */
export function commandLineOf(
  { agentCommand, agentInput }: Pick<AgentConfig, 'agentCommand' | 'agentInput'>,
  goal: string,
): CommandLine {
  if (agentCommand === null)
    throw new AgentError('No agent command is set: start berth with --agent-command.')
  if (agentInput === 'stdin') {
    const stdin = new TextEncoder().encode(goal.endsWith('\n') ? goal : `${goal}\n`)
    return { command: agentCommand, env: {}, stdin }
  }
  checkArgument(goal)
  const run = PLACEHOLDER.test(agentCommand) ? agentCommand : `${agentCommand} "$@"`
  const command = `set -- "$${GOAL_VARIABLE}"\nunset ${GOAL_VARIABLE}\n${run}`
  return { command, env: { [GOAL_VARIABLE]: goal } }
}

function checkArgument(goal: string): void {
  if (goal.includes('\0'))
    throw new AgentError('A goal that is given as an argument cannot hold a NUL character.')
  const most = MAX_ARGUMENT - `${GOAL_VARIABLE}=`.length
  const bytes = Buffer.byteLength(goal)
  if (bytes <= most) return
  throw new AgentError(
    `The goal is ${bytes} bytes long, and an argument of a program holds at most ${most}. Start berth with --agent-input stdin: the agent then reads goals of any length from its standard input.`,
  )
}
