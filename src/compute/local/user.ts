import { readFileSync } from 'node:fs'

/**
 * The name of the user that this process runs as, by its number: the environment, which Bun's
 * `os.userInfo` goes by, may say something else or nothing.
 */
export function userName(): string {
  const uid = String(process.getuid?.() ?? 0)
  try {
    for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const [name, , id] = line.split(':')
      if (name && id === uid) return name
    }
  } catch {
    // A container without a user list.
  }
  return uid === '0' ? 'root' : 'user'
}
