/**
 * The command line: what `berth COMMAND` does. It starts instances (`serve`, `run`, `up`), and calls them by the API as any
 * other client does.
 *
 * A command is an object (`command.ts`): a verb of a noun in `nouns/`, or a file of `commands/` that `commands/index.ts`
 * lists; long work is beside these, such as `doctor.ts`, `upgrade.ts`, `run/` and `report/` (the report of a run).
 * `table.ts` and `output.ts` lay out what is printed. `program.ts` makes a program of commander, the library
 * that parses arguments, from it. `command-line.ts` rewrites typed lines for commander, and `runner.ts` connects, calls and
 * prints. What a command loads it loads on first use: a start and `berth version` load as little as they can.
 * docs/contributing.md says how to add a command.
 */
import { StartupError, UsageError } from '../errors.ts'
import { CommandError } from './errors.ts'
import { type ProcessContext, processContext } from './process-context.ts'
import { runProgram } from './program.ts'

/** Runs the command line and ends the process with its exit code. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  const context = processContext()
  process.exit(await runCommand(args, context))
}

/**
 * Runs one command. Resolves to its exit code: 0, 1 for a failure, 2 for wrong usage, or a code of the command's own.
 */
export async function runCommand(args: readonly string[], context: ProcessContext): Promise<number> {
  try {
    return await runProgram(args, context)
  } catch (error) {
    // The message may quote a file or a server's response.
    const { toPlainText } = await import('./plain-text.ts')
    await context.stderr.write(`berth: ${toPlainText(describe(error))}\n`)
    if (error instanceof UsageError) return 2
    return error instanceof CommandError ? error.exitCode : 1
  }
}

function describe(error: unknown): string {
  const expected =
    error instanceof CommandError || error instanceof StartupError || error instanceof UsageError
  if (expected) return error.message
  // An unexpected error: its stack is needed for a bug report.
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
