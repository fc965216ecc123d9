import { join } from 'node:path'
import { openDatabase } from './database.ts'
import { openCipher } from './master-key.ts'

/** What the secrets in a state are read with. */
type Keys = Omit<Parameters<typeof openCipher>[0], 'queries'>

/**
 * Sees whether a state can be opened, and brings its schema up to date.
 *
 * @param path the folder that it lies in
 * @throws StartupError where it cannot be used
 */
export function checkState(path: string, keys: Keys): void {
  const database = openDatabase(join(path, 'berth.db'))
  try {
    openCipher({ queries: database.queries, ...keys })
  } finally {
    database.close()
  }
}
