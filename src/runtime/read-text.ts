import { readFileSync } from 'node:fs'

/**
 * Reads a small file, such as one of /proc, in Latin-1, so any bytes have a text. Returns null if it cannot be read: its
 * process may have ended, or belong to another user.
 */
export function readTextOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null
  }
}
