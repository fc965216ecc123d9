import { count, paint, printable } from './output.ts'
import type { OutputStream } from './process-context.ts'

/** What the option `--strict` does. */
export const STRICT = 'exit with 1 if berth warns of its pages; the app stays up'

/** How warnings are reported. */
interface WarningOptions {
  /** Whether they have been shown, as lines of the log. */
  readonly isShown: boolean
  readonly strict?: true | undefined
}

/**
 * Prints what is wrong with the pages of an app that is up.
 *
 * @returns the exit code: 1 if there are any and they count
 */
export async function reportWarnings(
  stderr: OutputStream,
  warnings: readonly string[],
  { isShown, strict }: WarningOptions,
): Promise<number> {
  if (!isShown)
    for (const warning of warnings)
      await stderr.write(`${paint(stderr, 'yellow', 'Warning:')} ${printable(warning)}\n`)
  if (strict === undefined || warnings.length === 0) return 0
  await stderr.write(`It is up, with ${count(warnings.length, 'warning')}, so --strict fails.\n`)
  return 1
}
