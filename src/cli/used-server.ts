import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { writePrivate } from '../storage/private-file.ts'
import { CommandError } from './errors.ts'
import type { ProcessContext } from './process-context.ts'
import { userDirectory } from './user-directory.ts'

/** The servers that `berth use` has chosen: their ids by the instance's address, by directory. */
type UsedServers = Record<string, Record<string, string>>

/** A choice that holds in a directory and below it. */
export interface UsedServer {
  readonly serverId: string
  /** Where it was made. */
  readonly directory: string
}

type Context = Pick<ProcessContext, 'env' | 'cwd'>

/** Returns the server that commands mean in the working directory, by the nearest choice; null if there is none. */
export function usedServer({ env, cwd }: Context, baseUrl: string): UsedServer | null {
  const path = pathOf(env)
  if (path === null || !existsSync(path)) return null
  const all = read(path)
  for (let directory = resolve(cwd); ; directory = dirname(directory)) {
    const serverId = all[directory]?.[baseUrl]
    if (serverId !== undefined) return { serverId, directory }
    if (directory === dirname(directory)) return null
  }
}

/**
 * Keeps a choice for the working directory, in place of an earlier one.
 *
 * @param serverId null takes back the choice that holds there, wherever it was made
 * @returns the choice that held before; null for none
 * @throws CommandError if it cannot be kept
 */
export function useServer(context: Context, baseUrl: string, serverId: string | null): UsedServer | null {
  const path = pathOf(context.env)
  if (path === null) {
    throw new CommandError(
      'There is no directory to keep the choice in: this user has no home. Name one with XDG_CONFIG_HOME.',
    )
  }
  const before = usedServer(context, baseUrl)
  if (before === null && serverId === null) return null
  const all = existsSync(path) ? read(path) : {}
  const directory = serverId === null && before ? before.directory : resolve(context.cwd)
  const choices = { ...all[directory] }
  if (serverId === null) delete choices[baseUrl]
  else choices[baseUrl] = serverId
  const changed: UsedServers = { ...all, [directory]: choices }
  if (Object.keys(choices).length === 0) delete changed[directory]
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writePrivate(path, `${JSON.stringify(changed, null, 2)}\n`)
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new CommandError(`${path} cannot be written: ${cause}. Mend its permissions.`)
  }
  return before
}

function pathOf(env: Context['env']): string | null {
  const directory = userDirectory(env, 'XDG_CONFIG_HOME', '.config')
  return directory === null ? null : join(directory, 'berth/use.json')
}

/** Reads the choices. Throws CommandError for a damaged file. */
function read(path: string): UsedServers {
  try {
    const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isUsedServers(parsed)) return parsed
  } catch {
    // Told below.
  }
  throw new CommandError(
    `${path} is damaged or may not be read. Remove it, and choose again with "berth use".`,
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isUsedServers = (value: unknown): value is UsedServers =>
  isObject(value) &&
  Object.values(value).every(
    (choices) => isObject(choices) && Object.values(choices).every((id) => typeof id === 'string'),
  )
