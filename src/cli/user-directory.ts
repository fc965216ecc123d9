import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { ProcessContext } from './process-context.ts'

/**
 * A directory of this user for files of one kind (XDG Base Directory Specification, where a relative path counts as none).
 *
 * @param variable what names it, such as XDG_CONFIG_HOME
 * @param usual where it is without that, from the home
 * @returns null for a user without a home, as in a container that runs under a number that nobody has
 */
export function userDirectory(env: ProcessContext['env'], variable: string, usual: string): string | null {
  const given = env[variable] ?? ''
  if (isAbsolute(given)) return given
  const home = env.HOME || homeOfUser()
  return home === null ? null : join(home, usual)
}

function homeOfUser(): string | null {
  try {
    return homedir()
  } catch {
    return null
  }
}
