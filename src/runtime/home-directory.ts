import { homedir } from 'node:os'

/**
 * Returns the absolute path of the user's home directory; null if there is none: a container may run under a number
 * that belongs to no user, without `HOME`.
 */
export function homeDirectory(): string | null {
  try {
    return homedir()
  } catch {
    return null
  }
}
