import type { TerminalExecution } from '../../compute/driver.ts'
import type { AgentConfig } from '../../config/agents.ts'
import { onAbort } from '../../runtime/abort.ts'
import { describeExitCode } from '../../runtime/exit-code.ts'
import { Masks } from '../../runtime/masks.ts'
import type { Agent, Assignment, Outcome } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import { TimeBudget } from '../time-budget.ts'
import { commandLineOf } from './command-line.ts'
import { type ShownLine, TerminalLines } from './lines.ts'
import { TerminalReport } from './report.ts'

/** The terminal size of agents. */
const SIZE = { columns: 120, rows: 40 } as const

/** Milliseconds that an agent has to exit after its work is cancelled. */
const GRACE_MS = 2_000

/**
 * Characters of a line that may be a question: an expression may take time that grows with their square, or worse.
 */
const LONGEST_QUESTION = 2_000

/** A command-line agent working on one goal. */
export class CommandRun {
  readonly #config: AgentConfig
  readonly #assignment: Assignment
  readonly #report: TerminalReport
  readonly #budget: TimeBudget
  readonly #question: RegExp | null
  /** Null before its start and after its end. */
  #terminal: TerminalExecution | null = null
  #asking = 0
  /** Why berth ended it, for a person; null if it did not. */
  #endedFor: string | null = null
  #fault: { error: unknown } | null = null

  constructor(config: AgentConfig, assignment: Assignment) {
    this.#config = config
    this.#assignment = assignment
    const masks = new Masks()
    masks.add(Object.values(assignment.environment()))
    this.#report = new TerminalReport(masks, (event) => this.#reportEvent(event))
    const { agentQuestion: question } = config
    // With the flags g or y, a match would start where the previous one ended.
    this.#question = question && new RegExp(question.source, question.flags.replace(/[gy]/g, ''))
    const { timeMs } = config.agentLimits
    this.#budget = new TimeBudget(timeMs, () =>
      this.#end(`The agent had ${timeText(timeMs)} and was ended then; --agent-limits can give it more.`),
    )
  }

  /**
   * Runs it to its end.
   *
   * @throws as `Agent.work` does
   */
  async work(): Promise<Outcome> {
    const { sandbox, signal, id, goal, context, environment } = this.#assignment
    const whole = context === undefined ? goal : `${goal}\n\n${context}`
    const { command, env, stdin } = commandLineOf(this.#config, whole)
    const lines = await TerminalLines.open({ ...SIZE, onLine: (line) => this.#handleLine(line) })
    signal.throwIfAborted()
    const terminal = sandbox.terminal({
      command,
      env: { ...environment(), BERTH_TASK_ID: id, ...env },
      size: SIZE,
      timeoutMs: null,
      ...(stdin === undefined ? {} : { stdin }),
      onOutput: async (data) => {
        const begun = performance.now()
        await lines.write(data)
        return this.#report.pace(performance.now() - begun)
      },
    })
    this.#terminal = terminal
    using _abort = onAbort(signal, () => terminal.cancel(GRACE_MS))
    this.#budget.run()
    try {
      const { exitCode } = await terminal.exit
      this.#terminal = null
      lines.end()
      signal.throwIfAborted()
      if (this.#fault !== null) throw this.#fault.error
      if (this.#endedFor !== null) {
        return { status: 'failed', result: withOutput(this.#endedFor, this.#report.tail) }
      }
      return outcomeOf(exitCode, this.#report.tail)
    } finally {
      this.#terminal = null
      this.#budget.pause()
      this.#report.end()
    }
  }

  /** Ends the agent with a reason. Later reasons are ignored. */
  #end(reason: string): void {
    this.#endedFor ??= reason
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
  #handleLine({ text, settled }: ShownLine): boolean {
    this.#report.add(text)
    const question = settled || text === '' || this.#terminal === null ? null : this.#questionIn(text)
    if (question === null) return false
    void this.#ask(question)
    return true
  }

  #questionIn(line: string): string | null {
    const found = line.length > LONGEST_QUESTION ? null : this.#question?.exec(line)
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
    this.#asking += 1
    this.#report.flush()
    this.#budget.pause()
    try {
      const { bytes, truncated } = typedAnswer(await ask(question))
      if (truncated) this.#report.notice('The answer is cut: a terminal takes no longer line.')
      this.#terminal?.write(bytes)
    } catch (error) {
      // Usually the work was cancelled, which ends the agent anyway.
      this.#fail(error)
    } finally {
      this.#asking -= 1
      if (this.#asking === 0 && this.#terminal !== null) this.#budget.run()
    }
  }
}

/** Bytes of a line that a terminal takes: it cuts longer ones, and the key that ends them. */
const LONGEST_ANSWER = 4_000

/** The key that ends a line. */
const ENTER = '\r'

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g

/** An answer in the form in which it is typed. */
interface TypedAnswer {
  readonly bytes: Uint8Array
  /** Whether its end is left out. */
  readonly truncated: boolean
}

/**
 * Converts an answer to keystrokes: one line, and Enter. Line breaks become spaces, because the first would end the
 * answer. Other control characters are dropped: they could be Ctrl-C or the keys of a menu.
 */
function typedAnswer(answer: string): TypedAnswer {
  const line = answer
    .trim()
    .replace(/[\r\n\t\u2028\u2029]+/g, ' ')
    .replace(CONTROL, '')
  const bytes = new TextEncoder().encode(line)
  if (bytes.length <= LONGEST_ANSWER)
    return { bytes: new TextEncoder().encode(line + ENTER), truncated: false }
  // A character that is cut in two is left out whole.
  const kept = new TextDecoder().decode(bytes.subarray(0, LONGEST_ANSWER), { stream: true })
  return { bytes: new TextEncoder().encode(kept + ENTER), truncated: true }
}

/** An agent that is a program on the server, run on a terminal. Its exit code decides the outcome. */
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

/** Exit codes of a shell that could not run a command. */
const NOT_EXECUTABLE = 126
const NOT_FOUND = 127

const NOT_FOUND_REMEDY =
  "A command was not found (exit code 127). Servers see this machine's programs of /usr and of the folders of PATH outside homes: install the agent there, or on the server itself (docs/command-agent.md)."

/**
 * Returns the outcome for an agent that has exited by itself.
 *
 * @param last the end of its output
 */
function outcomeOf(exitCode: number, last: string): Outcome {
  if (exitCode === 0) return { status: 'completed', result: last || 'The agent ended and printed nothing.' }
  return { status: 'failed', result: withOutput(`The agent failed: ${reasonOf(exitCode)}`, last) }
}

/** Joins a reason and the end of the output. */
function withOutput(reason: string, last: string): string {
  return last === '' ? `${reason} It printed nothing.` : `${reason} Its last lines:\n${last}`
}

/** Returns a time for a person: `90 s`, `10 min`, `2 h`. */
function timeText(ms: number): string {
  const units = [
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [unit, length] = units.find(([, length]) => ms >= length && ms % length === 0) ?? ['ms', 1]
  return `${ms / length} ${unit}`
}

function reasonOf(exitCode: number): string {
  if (exitCode === NOT_FOUND) return NOT_FOUND_REMEDY
  if (exitCode === NOT_EXECUTABLE) return 'A command cannot be executed (exit code 126).'
  return `It ${describeExitCode(exitCode)}.`
}
