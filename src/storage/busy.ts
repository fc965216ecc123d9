import { StartupError } from '../errors.ts'

/**
 * Milliseconds that a write waits while another program, such as the `sqlite3` shell or a copy, holds the file.
 * Writes are synchronous, so berth does nothing else meanwhile.
 */
export const BUSY_MS = 1_000

/** Returns what a start says if another program holds a database longer than a start waits. */
export const databaseBusy = (path: string): StartupError =>
  new StartupError(
    `The database ${path} is locked by another program, such as the sqlite3 shell, a backup, or a berth that has not quite ended. End that program and start again; "fuser ${path}" shows its process.`,
  )
