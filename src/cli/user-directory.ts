import { isAbsolute, join } from 'node:path'
import { homeDirectory } from '../runtime/home-directory.ts'
import type { ProcessContext } from './process-context.ts'

/**
 * Returns a user's directory for one kind of files (XDG Base Directory Specification, which ignores relative paths).
 *
 * @param variable that names it, such as XDG_CONFIG_HOME
 * @param usual default, relative to the home directory
 * @returns null for a user without a home, as in a container with an unknown uid
 */
export function userDirectory(env: ProcessContext['env'], variable: string, usual: string): string | null {
  const given = env[variable] ?? ''
  if (isAbsolute(given)) return given
  const home = env.HOME || homeDirectory()
  return home === null ? null : join(home, usual)
}
