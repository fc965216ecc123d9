import type { Emulators } from '../../compute/emulators/emulators.ts'
import type { TerminalExecution } from '../../compute/sandbox.ts'
import type { AgentConfig } from '../../config/agents.ts'
import { describeExitCode } from '../../runtime/exit-code.ts'
import { Masks } from '../../runtime/masks.ts'
import { onAbort } from '../../runtime/wait.ts'
import { type Agent, AgentError, type Assignment, type Outcome } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import { TimeBudget } from '../time-budget.ts'
import { type TerminalLine, TerminalLines } from './lines.ts'
import { TerminalReport } from './report.ts'

/** The terminal size of agents. */
const SIZE = { columns: 120, rows: 40 } as const

/** Milliseconds that an agent has to exit after its work is cancelled. */
const GRACE_MS = 2_000

/**
 * Characters of a line that may be a question: an expression may take time that grows with their square, or worse.
 * @bound program
 */
const MAX_QUESTION = 2_000

/** Dependencies of a command-line agent. */
interface CommandAgentDependencies {
  readonly config: AgentConfig
  /** Draw the output of the program. */
  readonly emulators: Emulators
}

/** A command-line agent working on one goal. */
class CommandRun {
  readonly #config: AgentConfig
  readonly #emulators: Emulators
  readonly #assignment: Assignment
  readonly #report: TerminalReport
  readonly #budget: TimeBudget
  readonly #question: RegExp | null
  /** Null before its start and after its end. */
  #terminal: TerminalExecution | null = null
  #openQuestions = 0
  /** Why berth ended it, for a person; null if it did not. */
  #endReason: string | null = null
  #fault: { error: unknown } | null = null

  constructor({ config, emulators }: CommandAgentDependencies, assignment: Assignment) {
    this.#config = config
    this.#emulators = emulators
    this.#assignment = assignment
    const masks = new Masks()
    masks.add(Object.values(assignment.environment()))
    this.#report = new TerminalReport(masks, (event) => this.#reportEvent(event))
    const { agentQuestion: question } = config
    // With the flags g or y, a match would start where the previous one ended.
    this.#question = question && new RegExp(question.source, question.flags.replace(/[gy]/g, ''))
    const { timeMs } = config.agentLimits
    this.#budget = new TimeBudget(timeMs, () =>
      this.#end(
        `The agent had ${formatDuration(timeMs)} and was ended then; --agent-limits can give it more.`,
      ),
    )
  }

  /**
   * Runs it to its end.
   *
   * @throws as `Agent.work` does
   */
  async run(): Promise<Outcome> {
    const { sandbox, owner, signal, id, goal, context, environment } = this.#assignment
    const whole = context === undefined ? goal : `${goal}\n\n${context}`
    const { command, env, stdin } = buildCommandLine(this.#config, whole)
    const lines = new TerminalLines({
      emulators: this.#emulators,
      size: SIZE,
      onLine: (line) => this.#handleLine(line),
    })
    const terminal = sandbox.terminal({
      command,
      env: { ...environment(), BERTH_TASK_ID: id, ...env },
      size: SIZE,
      timeoutMs: null,
      owner,
      ...(stdin === undefined ? {} : { stdin }),
      onOutput: async (data) => {
        await lines.write(data)
        return this.#report.throttle()
      },
    })
    this.#terminal = terminal
    using _abort = onAbort(signal, () => {
      // Nobody gets what it prints from now on, and to draw what waits would hold up the end for seconds.
      lines.close()
      terminal.cancel(GRACE_MS)
    })
    this.#budget.run()
    try {
      const { exitCode } = await terminal.exit
      this.#terminal = null
      signal.throwIfAborted()
      await lines.end()
      signal.throwIfAborted()
      if (this.#fault !== null) throw this.#fault.error
      if (this.#endReason !== null) {
        return { status: 'failed', result: withOutput(this.#endReason, this.#report.tail) }
      }
      return toOutcome(exitCode, this.#report.tail)
    } finally {
      this.#terminal = null
      lines.close()
      this.#budget.pause()
      this.#report.end()
    }
  }

  /** Ends the agent with a reason. Later reasons are ignored. */
  #end(reason: string): void {
    this.#endReason ??= reason
    this.#terminal?.cancel(GRACE_MS)
  }

  /** Ends the agent because of an error, with which the work then fails. Later errors are ignored. */
  #fail(error: unknown): void {
    this.#fault ??= { error }
    this.#terminal?.cancel(GRACE_MS)
  }

  /** Reports an event. Runs in timers, so nothing could catch an error: a failure ends the agent. */
  #reportEvent(event: AgentEvent): void {
    try {
      this.#assignment.report(event)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Takes a line of output; returns whether it is a question. */
  #handleLine({ text, afterQuestion }: TerminalLine): boolean {
    this.#report.add(text)
    const question = afterQuestion || text === '' || this.#terminal === null ? null : this.#questionIn(text)
    if (question === null) return false
    void this.#ask(question)
    return true
  }

  #questionIn(line: string): string | null {
    const found = line.length > MAX_QUESTION ? null : this.#question?.exec(line)
    if (!found) return null
    const group = found.slice(1).find((text) => text !== undefined)
    return group?.trim() || line.trim()
  }

  async #ask(question: string): Promise<void> {
    const { ask } = this.#assignment
    if (ask === null) {
      this.#end(
        `The agent asked ${JSON.stringify(question)}, and there is nobody to ask here. Give it options with which it decides itself.`,
      )
      return
    }
    this.#openQuestions += 1
    this.#report.flush()
    this.#budget.pause()
    try {
      const { bytes, truncated } = toKeystrokes(await ask(question))
      if (truncated) this.#report.notice('The answer is cut: a terminal takes no longer line.')
      this.#terminal?.write(bytes)
    } catch (error) {
      // Usually the work was cancelled, which ends the agent anyway.
      this.#fail(error)
    } finally {
      this.#openQuestions -= 1
      if (this.#openQuestions === 0 && this.#terminal !== null) this.#budget.run()
    }
  }
}

/** Bytes of a line that a terminal takes: it cuts longer ones, and the key that ends them. @bound system */
const MAX_ANSWER = 4_000

/** The key that ends a line. */
const ENTER = '\r'

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g

/** An answer in the form in which it is typed. */
interface Keystrokes {
  readonly bytes: Uint8Array
  /** Whether its end is left out. */
  readonly truncated: boolean
}

/**
 * Converts an answer to keystrokes: one line, and Enter. Line breaks become spaces, because the first would end the
 * answer. Other control characters are dropped: they could be Ctrl-C or the keys of a menu.
 */
function toKeystrokes(answer: string): Keystrokes {
  const line = answer
    .trim()
    .replace(/[\r\n\t\u2028\u2029]+/g, ' ')
    .replace(CONTROL, '')
  const bytes = new TextEncoder().encode(line)
  if (bytes.length <= MAX_ANSWER) return { bytes: new TextEncoder().encode(line + ENTER), truncated: false }
  // A character that is cut in two is left out whole.
  const kept = new TextDecoder().decode(bytes.subarray(0, MAX_ANSWER), { stream: true })
  return { bytes: new TextEncoder().encode(kept + ENTER), truncated: true }
}

/** An agent that is a program on the server, run on a terminal. Its exit code decides the outcome. */
export class CommandAgent implements Agent {
  readonly #dependencies: CommandAgentDependencies

  constructor(dependencies: CommandAgentDependencies) {
    this.#dependencies = dependencies
  }

  async work(assignment: Assignment): Promise<Outcome> {
    assignment.signal.throwIfAborted()
    return new CommandRun(this.#dependencies, assignment).run()
  }
}

/** Exit codes of a shell that could not run a command. */
const NOT_EXECUTABLE = 126
const NOT_FOUND = 127

const NOT_FOUND_REMEDY =
  "A command was not found (exit code 127). Servers see this machine's programs of /usr and of the directories of PATH outside homes: install the agent there, or on the server itself ('berth guide agents' says how)."

/**
 * Returns the outcome for an agent that has exited by itself.
 *
 * @param last the end of its output
 */
function toOutcome(exitCode: number, last: string): Outcome {
  if (exitCode === 0) return { status: 'completed', result: last || 'The agent ended and printed nothing.' }
  return { status: 'failed', result: withOutput(`The agent failed: ${exitReason(exitCode)}`, last) }
}

/** Joins a reason and the end of the output. */
function withOutput(reason: string, last: string): string {
  return last === '' ? `${reason} It printed nothing.` : `${reason} Its last lines:\n${last}`
}

/** Returns a time for a person: `90 s`, `10 min`, `2 h`. */
function formatDuration(ms: number): string {
  const units = [
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [unit, length] = units.find(([, length]) => ms >= length && ms % length === 0) ?? ['ms', 1]
  return `${ms / length} ${unit}`
}

function exitReason(exitCode: number): string {
  if (exitCode === NOT_FOUND) return NOT_FOUND_REMEDY
  if (exitCode === NOT_EXECUTABLE) return 'A command cannot be executed (exit code 126).'
  return `It ${describeExitCode(exitCode)}.`
}

/** The variable that passes a goal to the shell, which unsets it. */
const GOAL_VARIABLE = 'BERTH_GOAL'

/**
 * Longest argument, or variable with its name, that Linux passes to a program, with room for the terminating zero.
 * @bound system
 */
const MAX_ARGUMENT = 128 * 1024 - 1

/** Matches a command line with a place for the goal. */
const PLACEHOLDER = /"\$(?:[1@]|\{[1@]\})"/

/** A command line with its variables and input. */
interface CommandLine {
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
function buildCommandLine(
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
