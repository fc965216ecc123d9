/** Returns the message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns a text as one that another sentence may follow: with a full stop, unless it has a mark of its own. */
export function sentence(text: string): string {
  const said = text.trim().replace(/:$/, '')
  return /[.!?]$/.test(said) ? said : `${said}.`
}

/** Returns the code of a system error, such as `ENOENT`, or of one of SQLite; undefined for any other. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** Reports whether SQLite failed because another program holds the file. */
export const isBusy = (error: unknown): boolean => (codeOf(error) ?? '').startsWith('SQLITE_BUSY')

/** Codes of SQLite and of the system, and the kind of a workspace's failure, which mean that the disk is full. */
const FULL: ReadonlySet<unknown> = new Set(['SQLITE_FULL', 'ENOSPC', 'EDQUOT', 'disk_full'])

/** Reports whether an error, or what caused it, means that the disk is full. */
export function isDiskFull(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, fault } = cause as { code?: unknown; fault?: unknown }
    if (FULL.has(code) || FULL.has(fault)) return true
  }
  return false
}

/** Says how to make room while berth runs: what needs no room itself. */
export const MAKE_ROOM =
  'Free space there: to delete files of servers, snapshots, or servers needs next to none.'
