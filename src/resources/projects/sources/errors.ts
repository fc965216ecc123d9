import { ExplainedError } from '../../../errors.ts'
import { messageOf } from '../../../runtime/error-info.ts'

/**
 * A source whose code cannot be used; the message is a sentence for its author, without credentials. Nothing was
 * changed.
 */
export class SourceError extends ExplainedError {
  override readonly name = 'SourceError'
}

/** Formats a name for a message: on one line and not too long. */
export const quoted = (name: string): string =>
  JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)

/** Returns the refusal of an archive that a library cannot read. */
export const damaged = (error: unknown): SourceError =>
  new SourceError(`It is damaged: ${messageOf(error).replace(/\.$/, '')}.`)

/** Reports whether an error is of the operating system, such as a full disk, and not of the archive. */
export const isSystemError = (error: unknown): boolean =>
  error instanceof Error && 'errno' in error && 'syscall' in error
