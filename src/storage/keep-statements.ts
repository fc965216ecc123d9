import type { Database as Sqlite, Statement } from 'bun:sqlite'

/** Compiled statements kept at most: each takes a few KB, and lists of ids make texts of any number. */
const MAX_KEPT = 200

/**
 * Makes a connection compile each text once and keep the statement for the next query with the same text. The one that
 * was not used for longest is dropped first; a query that holds it can still use it. No caller may keep the cursor of
 * `iterate` open: others have the same statement. `close(true)` finalizes them.
 */
export function keepStatements(sqlite: Sqlite): void {
  const compile = sqlite.prepare.bind(sqlite)
  const kept = new Map<string, Statement>()
  const prepare = (text: string): Statement => {
    const statement = kept.get(text) ?? compile(text)
    // A map lists its keys in the order in which they were set.
    kept.delete(text)
    kept.set(text, statement)
    for (const oldest of kept.keys()) {
      if (kept.size <= MAX_KEPT) break
      kept.delete(oldest)
    }
    return statement
  }
  sqlite.prepare = prepare as Sqlite['prepare']
}
