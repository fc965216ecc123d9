import { StartupError } from '../errors.ts'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { isDiskFull } from '../storage/disk-full.ts'

/** Codes of SQLite for a file that is damaged or no database. */
const DAMAGED = /^SQLITE_(?:CORRUPT|NOTADB)/

/** Most characters of SQLite's message: it may quote the definition of a table. */
const MOST_CAUSE = 120

/**
 * Returns the failure of a start as one sentence with cause and remedy, if its cause is a full disk or a damaged database;
 * otherwise unchanged.
 *
 * @param path the data directory
 */
export async function startFailure(error: unknown, path: string): Promise<unknown> {
  if (isDiskFull(error)) {
    return new StartupError(
      `The disk that holds the data directory ${path} is full. Free space there, then start again: snapshots in ${path}/snapshots, the package cache ${path}/packages and files below ${path}/servers can be deleted while berth is stopped.`,
      { cause: error },
    )
  }
  const damage = damageIn(error)
  if (damage === null) return error
  const { wayBack } = await import('./way-back.ts')
  return new StartupError(
    `The database ${path}/berth.db is damaged: ${briefly(damage)}. Nothing was changed. ${wayBack(path)}`,
    { cause: error },
  )
}

function damageIn(error: unknown): Error | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (DAMAGED.test(codeOf(cause) ?? '')) return cause
  return null
}

function briefly(error: unknown): string {
  const [line = ''] = messageOf(error).split('\n')
  return line.length > MOST_CAUSE ? `${line.slice(0, MOST_CAUSE)} …` : line.replace(/\.$/, '')
}
