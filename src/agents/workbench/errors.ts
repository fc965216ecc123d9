/** A tool could not do what it was asked to; the message is for whoever asked. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}
