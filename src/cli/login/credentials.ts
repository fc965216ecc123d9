import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject } from '../../runtime/is-object.ts'
import { writePrivate } from '../../storage/files.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { userDirectory } from '../user-directory.ts'
import { checkNoLink, checkPrivateDirectory, createPrivateFile, readPrivateFile } from './private-file.ts'

/** A stored sign-in: the key and its metadata. */
export interface Login {
  api_key: string
  key_id: string
  account_id: string
  label: string
  /** ISO 8601, by the instance's clock. */
  created_at: string
}

/** The stored sign-ins of this user. */
export interface Logins {
  /** Address of the default instance of commands; null for none. */
  current: string | null
  /** By address as typed, without a trailing slash. Another name of the same machine counts as another instance. */
  instances: Map<string, Login>
}

/**
 * Returns the path of the file with the sign-ins.
 *
 * @throws CommandError for a user without a home
 */
export function credentialsPath(env: ProcessContext['env']): string {
  const directory = userDirectory(env, 'XDG_CONFIG_HOME', '.config')
  if (directory !== null) return join(directory, 'berth/credentials.json')
  throw new CommandError(
    'There is no directory to keep a key in: this user has no home. Name one with XDG_CONFIG_HOME.',
  )
}

/**
 * Reads the sign-ins.
 *
 * @throws CommandError if other users can read or change the file, or it is damaged
 */
export function readLogins(env: ProcessContext['env']): Logins {
  if (userDirectory(env, 'XDG_CONFIG_HOME', '.config') === null)
    return { current: null, instances: new Map() }
  const path = credentialsPath(env)
  const text = readPrivateFile(path)
  if (text === null || text.trim() === '') return { current: null, instances: new Map() }
  const parsed = parse(text)
  if (parsed) return parsed
  throw new CommandError(
    `${path} is damaged. Restore or remove it, and sign in again with "berth login"; keys that it kept stay valid until they are deleted.`,
  )
}

/**
 * Checks that a key could be stored and that the stored ones can be read.
 *
 * @throws CommandError if not
 */
export function checkWritable(env: ProcessContext['env']): void {
  const directory = dirname(credentialsPath(env))
  if (existsSync(directory)) checkPrivateDirectory(directory)
  checkNoLink(join(directory, LOCK))
  readLogins(env)
}

/**
 * Changes the stored sign-ins atomically. Waits while another berth changes them.
 *
 * @throws CommandError if the file cannot be read or written
 */
export async function updateLogins(
  env: ProcessContext['env'],
  change: (logins: Logins) => void,
): Promise<void> {
  const path = credentialsPath(env)
  const directory = dirname(path)
  const { Database } = await import('bun:sqlite')
  let lock: InstanceType<typeof Database> | undefined
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    checkPrivateDirectory(directory)
    chmodSync(directory, 0o700)
    const lockPath = join(directory, LOCK)
    // SQLite would follow a link, and let other users read the file.
    createPrivateFile(lockPath)
    // The kernel releases the lock of a process that dies.
    lock = new Database(lockPath)
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
      `${path} cannot be written: ${cause}. Fix the directory's permissions, or name another with XDG_CONFIG_HOME.`,
    )
  } finally {
    lock?.close()
  }
}

/** The file that is locked for a change, in the same directory. */
const LOCK = 'credentials.lock'

/** Milliseconds to wait for another berth, whose change takes about one. */
const LOCK_MS = 5_000

/** Parses the file of sign-ins; returns null for a damaged one. */
function parse(text: string): Logins | null {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value)) return null
    // `{}` counts as no sign-ins, like an empty file.
    if (Object.keys(value).length === 0) return { current: null, instances: new Map() }
    const { current, instances } = value
    if (!isObject(instances)) return null
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
  isObject(value) && FIELDS.every((field) => typeof value[field] === 'string')
