/** A tool could not do its work; the message is for its user. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}
