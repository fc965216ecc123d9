/** A line of the log of an app or a build, without secrets. */
export interface RecordedLine {
  /** ISO 8601, by berth's clock. */
  readonly at: string
  /** What printed it, such as `install` or `app`. */
  readonly source: string
  /** Name of the worker that printed it. */
  readonly worker?: string
  readonly text: string
}

/**
 * Receives what services store or notice at the moment when they do, also what is removed soon after. Its methods only take
 * a note: they are called inside transactions.
 */
export interface Recorder {
  /** Takes a response that the journal leaves out: the credentials in it are hidden everywhere. */
  response(response: Response): void
  /** Takes an event of a task's transcript. */
  transcript(taskId: string, event: object): void
  /**
   * Takes a line of a log.
   *
   * @param log id of the project, of the server that publishes the app, or of the build
   */
  logLine(log: string, line: RecordedLine): void
  /** Takes the query of a wait whose time was over before anything that it waited for. */
  expiredWait(query: object): void
}
