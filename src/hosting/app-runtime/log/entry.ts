/** Origin of a log line; `berth` for berth's own messages. */
export type LogSource =
  | 'fetch'
  | 'install'
  | 'build'
  | 'release'
  | 'app'
  | 'worker'
  | 'berth'
  // Phases of builds.
  | 'plan'
  | 'scaffold'
  | 'implement'
  | 'deploy'

/** Which of a log's entries are wanted. */
export interface LogSelection {
  /** How many of the last entries. */
  readonly tail: number
  /** Only those since this time, in milliseconds since 1970. */
  readonly since?: number | null
  /** Only those with a higher `seq`. */
  readonly after?: number
  /** Only those that a worker of this name has printed. */
  readonly worker?: string | undefined
}

/** One line of an app's log. */
export interface LogEntry {
  /** Counts up over all lines of the log, forever. */
  readonly seq: number
  /** ISO 8601, by the clock. */
  readonly at: string
  readonly source: LogSource
  /** Name of the worker that printed the line. */
  readonly worker?: string
  /** Missing for berth's own messages. */
  readonly stream?: 'stdout' | 'stderr'
  /** Set if the line says that a bring-up has come to a phase. */
  readonly phase?: string
  /** Id of that bring-up. */
  readonly run?: string
  /** Without line end, control characters and secrets. */
  readonly text: string
}

/** Parses an entry as stored on disk; returns null for an invalid line, which a crash may leave. */
export function parseEntry(line: string): LogEntry | null {
  if (line === '') return null
  try {
    const { seq, at, source, worker, stream, phase, run, text } = JSON.parse(line) as Partial<LogEntry>
    if (typeof seq !== 'number' || typeof at !== 'string' || typeof source !== 'string') return null
    if (typeof text !== 'string') return null
    return {
      ...{ seq, at, source },
      ...(worker === undefined ? {} : { worker }),
      ...(stream === undefined ? {} : { stream }),
      ...(phase === undefined ? {} : { phase }),
      ...(run === undefined ? {} : { run }),
      text,
    }
  } catch {
    return null
  }
}
