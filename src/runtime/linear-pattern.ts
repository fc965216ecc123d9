import { RE2JS } from 're2js'

/** An expression that is refused, with what was expected in its place as `message`. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** Options of `compilePattern`. */
interface PatternOptions {
  /** Flags of RE2, such as `RE2JS.MULTILINE`. */
  flags: number
  /** Most instructions of the compiled expression. With the length of the text, it bounds the time of a match. */
  maxInstructions: number
}

/**
 * Compiles a regular expression of a caller. The engine is RE2, whose time is linear in the length of the text. It has
 * neither backreferences nor lookaround.
 *
 * @throws PatternError
 */
export function compilePattern(source: string, { flags, maxInstructions }: PatternOptions): RE2JS {
  let pattern: RE2JS
  try {
    pattern = RE2JS.compile(source, flags)
  } catch (error) {
    // The engine shows its flags before the expression.
    const reason =
      error instanceof Error
        ? error.message.replace('error parsing regexp: ', '').replace(/`\(\?\w+\)/, '`')
        : String(error)
    throw new PatternError(
      `expected a regular expression in RE2's syntax, which has no lookaround and no backreferences: ${reason}.`,
    )
  }
  if (pattern.programSize() <= maxInstructions) return pattern
  throw new PatternError(
    'expected a smaller expression: repetitions such as {1,100} count as often as they repeat.',
  )
}
