import { readdirSync } from 'node:fs'

/**
 * Lists the names in a directory. Returns none if it cannot be listed: another process may remove it at any moment, or it
 * belongs to another user.
 */
export function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}
