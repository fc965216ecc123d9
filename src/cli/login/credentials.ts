import { chmodSync, closeSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writePrivate } from '../../storage/private-file.ts'
import { CommandError } from '../errors.ts'
import { userFolder } from '../home.ts'
import type { Terminal } from '../terminal.ts'

/** What is kept of a sign-in: the key, and what is known of it. */
export interface Login {
  api_key: string
  key_id: string
  account_id: string
  label: string
  /** ISO 8601, by the instance's clock. */
  created_at: string
}

/** The instances that this user is signed in to. */
export interface Logins {
  /** The address of the one that commands talk to where nothing names another; null for none. */
  current: string | null
  /** By address as it was typed, without a slash at the end: another name of the same machine is another instance. */
  instances: Map<string, Login>
}

/** The file that keeps them. @throws CommandError for a user without a home */
export function credentialsPath(env: Terminal['env']): string {
  const folder = userFolder(env, 'XDG_CONFIG_HOME', '.config')
  if (folder !== null) return join(folder, 'berth/credentials.json')
  throw new CommandError(
    'There is no folder to keep a key in: this user has no home. Name one with XDG_CONFIG_HOME.',
  )
}

/** Reads them. @throws CommandError where others may read the file too, or it is damaged */
export function readLogins(env: Terminal['env']): Logins {
  if (userFolder(env, 'XDG_CONFIG_HOME', '.config') === null) return { current: null, instances: new Map() }
  const path = credentialsPath(env)
  const text = readPrivate(path)
  if (text === null) return { current: null, instances: new Map() }
  const parsed = parse(text)
  if (parsed) return parsed
  throw new CommandError(
    `${path} is damaged. Restore or remove it, and sign in again with "berth login"; keys that it kept stay valid until they are deleted.`,
  )
}

/**
 * Changes what is kept, whole or not at all. Another berth that does so at the same time waits.
 *
 * @throws CommandError where the file cannot be read or written
 */
export async function changeLogins(env: Terminal['env'], change: (logins: Logins) => void): Promise<void> {
  const path = credentialsPath(env)
  const folder = dirname(path)
  const { Database } = await import('bun:sqlite')
  let lock: InstanceType<typeof Database> | undefined
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    chmodSync(folder, 0o700)
    // The kernel drops the lock of whoever dies.
    lock = new Database(join(folder, 'credentials.lock'))
    lock.run(`PRAGMA busy_timeout = ${LOCK_MS}`)
    lock.run('BEGIN EXCLUSIVE')
    const logins = readLogins(env)
    change(logins)
    const { current, instances } = logins
    writePrivate(path, `${JSON.stringify({ current, instances: Object.fromEntries(instances) }, null, 2)}\n`)
  } catch (error) {
    if (error instanceof CommandError) throw error
    const cause = error instanceof Error ? error.message : String(error)
    throw new CommandError(
      `${path} cannot be written: ${cause}. Mend the folder's permissions, or name another with XDG_CONFIG_HOME.`,
    )
  } finally {
    lock?.close()
  }
}

/** Milliseconds to wait for another berth, which writes in one. */
const LOCK_MS = 5_000

/** The text of a file that is its owner's alone; null where there is none. */
function readPrivate(path: string): string | null {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw new CommandError(`${path} cannot be read: ${message}. Mend its permissions.`)
  }
  try {
    const rights = fstatSync(file).mode & 0o777
    if ((rights & 0o077) !== 0) {
      throw new CommandError(
        `${path} is open to other users (mode ${rights.toString(8).padStart(4, '0')}), and so its keys are not used. Run: chmod 600 ${path}. Where somebody may have read it, sign out and in again.`,
      )
    }
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

function parse(text: string): Logins | null {
  try {
    const { current, instances } = JSON.parse(text) as { current?: unknown; instances?: unknown }
    if (typeof instances !== 'object' || instances === null) return null
    const entries = Object.entries(instances)
    if (!entries.every((entry): entry is [string, Login] => isLogin(entry[1]))) return null
    const known = new Map(entries)
    return { current: typeof current === 'string' && known.has(current) ? current : null, instances: known }
  } catch {
    return null
  }
}

const FIELDS = ['api_key', 'key_id', 'account_id', 'label', 'created_at'] as const

const isLogin = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  FIELDS.every((field) => typeof (value as Record<string, unknown>)[field] === 'string')
