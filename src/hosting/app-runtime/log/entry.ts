/** Where a line of an app's log comes from: `berth` is what berth says about it. */
export type LogSource =
  | 'fetch'
  | 'install'
  | 'build'
  | 'app'
  | 'berth'
  // Phases of builds.
  | 'plan'
  | 'scaffold'
  | 'implement'
  | 'deploy'

/** One line of an app's log. */
export interface LogEntry {
  /** Counts up over all lines of the log, for ever. */
  readonly seq: number
  /** ISO 8601, by the clock. */
  readonly at: string
  readonly source: LogSource
  /** Not there for what berth itself says. */
  readonly stream?: 'stdout' | 'stderr'
  /** Without line end, control characters and secrets. */
  readonly text: string
}

/** Reads an entry as it stands on disk; null for a line that is none, as a crash may leave. */
export function parseEntry(line: string): LogEntry | null {
  if (line === '') return null
  try {
    const { seq, at, source, stream, text } = JSON.parse(line) as Partial<LogEntry>
    if (typeof seq !== 'number' || typeof at !== 'string' || typeof source !== 'string') return null
    if (typeof text !== 'string') return null
    return stream === undefined ? { seq, at, source, text } : { seq, at, source, stream, text }
  } catch {
    return null
  }
}
