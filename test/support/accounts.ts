import { Database as Sqlite } from 'bun:sqlite'
import { join } from 'node:path'

/** Limits a key to projects that need not exist, by writing to the database file beside the running berth. */
export function limitToProjects(dataDir: string, keyId: string, projects: string[]): void {
  const sqlite = new Sqlite(join(dataDir, 'berth.db'))
  try {
    sqlite.run('PRAGMA busy_timeout = 5000')
    const change = 'UPDATE api_keys SET allowed_project_ids = ? WHERE id = ?'
    sqlite.run(change, [JSON.stringify(projects), keyId])
  } finally {
    sqlite.close()
  }
}
