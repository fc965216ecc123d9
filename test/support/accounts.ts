import { Database as Sqlite } from 'bun:sqlite'
import { join } from 'node:path'

/**
 * Gives the instance on a data folder a second account, with one account-wide key, by writing to the
 * database file beside the running berth.
 *
 * @returns the key's plaintext
 */
export function secondAccount(dataDir: string): string {
  const key = `sk_live_${crypto.randomUUID().replaceAll('-', '')}`
  const hash = new Bun.CryptoHasher('sha256').update(key).digest()
  write(dataDir, (sqlite) => {
    const name = crypto.randomUUID()
    sqlite.run('INSERT INTO accounts (id, label, created_at) VALUES (?, ?, 0)', [`acct_${name}`, 'Second'])
    sqlite.run(
      'INSERT INTO api_keys (id, account_id, label, hash, last_four, created_at) VALUES (?, ?, ?, ?, ?, 0)',
      [`key_${name}`, `acct_${name}`, 'Second', hash, key.slice(-4)],
    )
  })
  return key
}

/** Limits a key to projects that need not exist. */
export function limitToProjects(dataDir: string, keyId: string, projects: string[]): void {
  const change = 'UPDATE api_keys SET allowed_project_ids = ? WHERE id = ?'
  write(dataDir, (sqlite) => sqlite.run(change, [JSON.stringify(projects), keyId]))
}

function write(dataDir: string, change: (sqlite: Sqlite) => void): void {
  const sqlite = new Sqlite(join(dataDir, 'berth.db'))
  try {
    sqlite.run('PRAGMA busy_timeout = 5000')
    change(sqlite)
  } finally {
    sqlite.close()
  }
}
