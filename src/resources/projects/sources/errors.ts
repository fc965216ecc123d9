/**
 * A source whose code cannot be used; the message is a sentence for its author, without credentials. Nothing was
 * changed.
 */
export class SourceError extends Error {
  override readonly name = 'SourceError'
}

/** Formats a name for a message: on one line and not too long. */
export const quoted = (name: string): string =>
  JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)
